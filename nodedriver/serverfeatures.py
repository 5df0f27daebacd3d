"""What this cluster's API server keeps of a ResourceSlice, found out by dry runs before anything is published.

A server drops fields whose feature gates are off. A MIG placement whose counters were dropped could be given out beside
the whole card, so finding out after the write would be too late.
"""

from __future__ import annotations

import structlog

from dra.kube import requests
from dra.kube.errors import InvalidError
from dra.kube.port import Cluster
from dra.kube.requests import RESOURCE_SLICES
from dra.objects import (
    CapacityRange,
    CapacityRequestPolicy,
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ObjectMeta,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
    decode,
    encode,
)
from dra.slices import SliceContent, dropped_fields
from nodedriver.inventory import ServerFeatures

log = structlog.get_logger(__name__)

_ONE = {"probe": Counter(value="1")}
_POLICY = CapacityRequestPolicy(default="1", valid_range=CapacityRange(min="1", step="1"))
# Counter sets and what draws on them stand in different slices, which servers before 1.35 refuse.
_COUNTERS = SliceContent(index=0, shared_counters=(CounterSet(name="probe", counters=_ONE),))
_DRAWS = Device(
    name="probe", consumes_counters=(DeviceCounterConsumption(counter_set="probe", counters=_ONE),)
)  # fmt: skip
_SHARED = Device(
    name="probe",
    allow_multiple_allocations=True,
    capacity={"probe": DeviceCapacity(value="10", request_policy=_POLICY)},
)
_TAINTED = Device(name="probe", taints=(DeviceTaint(key="probe", effect="NoSchedule"),))
_WAITED_FOR = Device(
    name="probe", binds_to_node=True, binding_conditions=("probe",), binding_failure_conditions=("probe-failed",)
)  # fmt: skip
_PROBES = {
    "counters": (_COUNTERS, SliceContent(index=0, devices=(_DRAWS,))),
    "shares": (SliceContent(index=0, devices=(_SHARED,)),),
    "taints": (SliceContent(index=0, devices=(_TAINTED,)),),
    "waiting": (SliceContent(index=0, devices=(_WAITED_FOR,)),),
}


def detect_features(cluster: Cluster, driver_name: str, node_name: str) -> ServerFeatures:
    """Ask with one small slice per feature, as dry runs. KubeError where the server refuses for another reason."""
    kept = {
        feature: all(_is_kept(cluster, _slice(driver_name, node_name, content)) for content in contents)
        for feature, contents in _PROBES.items()
    }
    for feature in (feature for feature, is_kept in kept.items() if not is_kept):
        log.warning("API server lacks a feature, published without", feature=feature)
    return ServerFeatures(**kept)


def _slice(driver_name: str, node_name: str, content: SliceContent) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(generate_name="probe-"),
        spec=ResourceSliceSpec(
            driver=driver_name,
            node_name=node_name,
            pool=ResourcePool(name=node_name, generation=1, resource_slice_count=1),
            devices=content.devices,
            shared_counters=content.shared_counters,
        ),
    )


def _is_kept(cluster: Cluster, probe: ResourceSlice) -> bool:
    try:
        body = cluster.send(requests.create(RESOURCE_SLICES, encode(probe), dry_run=True))
    except InvalidError as error:
        log.info("API server refused a probe", error=str(error))
        return False
    return not dropped_fields(probe, decode(body, ResourceSlice))
