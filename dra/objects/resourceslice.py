"""ResourceSlice: what a driver publishes for one pool, in one or more pieces (resource.k8s.io/v1)."""

from __future__ import annotations

from dra.objects.device import CounterSet, Device
from dra.objects.meta import ApiStruct, Int64, ObjectMeta
from dra.objects.nodeselector import NodeSelector

API_VERSION = "resource.k8s.io/v1"


class ResourcePool(ApiStruct, frozen=True, kw_only=True):
    """The pool a slice belongs to. Only slices of the highest generation count; all of them must be there."""

    name: str
    generation: Int64 = 0  # not sent by Go clients when zero
    resource_slice_count: Int64


class ResourceSliceSpec(ApiStruct, frozen=True, kw_only=True):
    """Devices or counter sets of a pool, and the nodes that can reach them."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(ApiStruct, frozen=True, kw_only=True):
    """One slice."""

    api_version: str = API_VERSION
    kind: str = "ResourceSlice"
    metadata: ObjectMeta
    spec: ResourceSliceSpec
