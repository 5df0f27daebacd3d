"""Which pools a node sees, in the order in which the scheduler tries them, with the taints of rules on their devices.

Follows `GatherPools` of the structured allocator and the ResourceSlice tracker. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dra.allocation.shapes import PublishedSlice, Shape, tainted_layout
from dra.features import Features
from dra.names import DeviceID
from dra.objects import DeviceTaint, DeviceTaintRule, Node
from dra.pools import Gathered, PoolID, Viewpoint, gather
from dra.taints import rule_concerns, rule_selects

type Seen = tuple[PoolID, Gathered[PublishedSlice], Viewpoint]


def pools_seen(
    node: Node,
    pools: Mapping[PoolID, Sequence[PublishedSlice]],
    rules: Sequence[DeviceTaintRule],
    features: Features,
) -> list[Seen]:
    """Pools with something for the node: by driver and pool name, those with binding conditions after the others.

    InvalidObjectError for a malformed node selector.
    """
    viewpoint = Viewpoint(
        node.metadata.name,
        node.metadata.labels,
        partitionable_devices=features.partitionable_devices,
        compatibility_groups=features.device_compatibility_groups,
    )
    gathered = ((pool, gather(slices, viewpoint)) for pool, slices in pools.items())
    seen = [(pool, _tainted(pool, each, rules), viewpoint) for pool, each in gathered if each is not None]
    return sorted(seen, key=lambda each: (each[1].binding, each[0]))


def _tainted(
    pool: PoolID, gathered: Gathered[PublishedSlice], rules: Iterable[DeviceTaintRule]
) -> Gathered[PublishedSlice]:
    concerned = [rule for rule in rules if rule_concerns(rule, pool.driver, pool.name)]
    if not concerned:
        return gathered
    return replace(gathered, slices=tuple(_tainted_slice(each, concerned) for each in gathered.slices))


def _tainted_slice(slice_: PublishedSlice, rules: Sequence[DeviceTaintRule]) -> PublishedSlice:
    shapes = tuple(
        _tainted_shape(shape, DeviceID(slice_.driver, slice_.pool, name), rules)
        for name, shape in zip(slice_.layout.names, slice_.layout.shapes, strict=True)
    )
    return replace(slice_, layout=tainted_layout(slice_.layout, shapes))


def _tainted_shape(shape: Shape, device: DeviceID, rules: Sequence[DeviceTaintRule]) -> Shape:
    taints: tuple[DeviceTaint, ...] = tuple(rule.spec.taint for rule in rules if rule_selects(rule, device))
    return shape.tainted(taints) if taints else shape
