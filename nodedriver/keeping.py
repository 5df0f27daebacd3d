"""What stays published although the node would not publish it any more, for the claims that hold it. Pure.

A held device that leaves its slice sets its counters free, and the scheduler gives them out twice; a counter below
what is drawn makes it refuse the whole pool (ResourceSlice API, shared counters). So both stay, with a taint that lets
nobody new in, until no claim holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import msgspec

from dra.objects import Counter, CounterSet, Device, DeviceTaint, ResourceSlice
from dra.quantity import Quantity, parse_quantity
from dra.slices import SliceContent

type Content = tuple[SliceContent, ...]
type Held = Callable[[], AbstractSet[str]]  # the names of devices that claims hold; asked only where something would go

_ELSEWHERE = 0xFFFFF  # index of a slice whose name tells none: it comes last
WITHDRAWN = "withdrawn"  # last part of the taint's key; values:
NOT_SERVED, FEWER_COUNTERS = "not-served", "fewer-counters"


@dataclass(frozen=True, slots=True)
class Kept:
    """What to publish, and whether some of it is there for its holders alone."""

    content: Content
    for_holders: bool


def content_of(slices: Iterable[ResourceSlice]) -> Content:
    """Published slices as content; the index is the first part of the name (`dra.slices.slice_name`)."""
    return tuple(
        SliceContent(
            index=_index(each.metadata.name), devices=each.spec.devices, shared_counters=each.spec.shared_counters
        )
        for each in slices
    )


def with_remembered(published: Content, remembered: Content) -> Content:
    """What is published and, of what was before, whatever somebody has deleted meanwhile."""
    names = {device.name for each in published for device in each.devices}
    sets = {counters.name for each in published for counters in each.shared_counters}
    deleted = (
        SliceContent(
            index=each.index,
            devices=tuple(device for device in each.devices if device.name not in names),
            shared_counters=tuple(counters for counters in each.shared_counters if counters.name not in sets),
        )
        for each in remembered
    )
    return (*published, *(each for each in deleted if each.devices or each.shared_counters))


def keep(wanted: Content, before: Content, held: Held, driver_name: str) -> Kept:
    """What to publish after `before`, so that nothing that a claim holds is dropped and no drawn counter is lowered."""
    going, lowered = _going(wanted, before), _lowered(wanted, before)
    if not going and not lowered:
        return Kept(wanted, for_holders=False)
    names = held()
    kept = {name: device for name, device in going.items() if name in names}
    drawn = {name for each in before for device in each.devices if device.name in names for name in _draws_on(device)}
    taints = tuple(_taint(driver_name, value) for value in (NOT_SERVED, FEWER_COUNTERS))
    extra = tuple(_extra(before, wanted, kept, taints[0]))
    raised = {name: higher for name, higher in lowered.items() if name in drawn}
    held_up = (_held_up(each, raised, taints[1]) for each in wanted)
    return Kept(_joined((*held_up, *extra)), for_holders=bool(extra or raised))


def _going(wanted: Content, before: Content) -> dict[str, Device]:
    """The published devices that are not wanted any more."""
    names = {device.name for each in wanted for device in each.devices}
    return {device.name: device for each in before for device in each.devices if device.name not in names}


def _lowered(wanted: Content, before: Content) -> dict[str, CounterSet]:
    """The wanted counter sets that have less than is published, with as much as that."""
    published = {each.name: each for content in before for each in content.shared_counters}
    higher = {}
    for each in (each for content in wanted for each in content.shared_counters if each.name in published):
        raised = _raised(each, published[each.name])
        if raised != each:
            higher[each.name] = raised
    return higher


def _raised(wanted: CounterSet, published: CounterSet) -> CounterSet:
    counters = dict(wanted.counters)
    for name, old in published.counters.items():
        if name not in counters or _amount(counters[name]) < _amount(old):
            counters[name] = old
    return CounterSet(name=wanted.name, counters=counters)


def _extra(before: Content, wanted: Content, kept: Mapping[str, Device], taint: DeviceTaint) -> Iterator[SliceContent]:
    """The kept devices, and the counter sets that they draw on where the node has these no more."""
    there = {each.name for content in wanted for each in content.shared_counters}
    needed = {name for device in kept.values() for name in _draws_on(device)} - there
    for each in before:
        devices = tuple(_tainted(device, taint) for device in each.devices if device.name in kept)
        counters = tuple(each for each in each.shared_counters if each.name in needed)
        if devices or counters:
            yield SliceContent(index=each.index, devices=devices, shared_counters=counters)


def _held_up(content: SliceContent, raised: Mapping[str, CounterSet], taint: DeviceTaint) -> SliceContent:
    return replace(
        content,
        shared_counters=tuple(raised.get(each.name, each) for each in content.shared_counters),
        devices=tuple(
            _tainted(device, taint) if any(name in raised for name in _draws_on(device)) else device
            for device in content.devices
        ),
    )


def _joined(content: Content) -> Content:
    """One slice an index, in order."""
    by_index: dict[int, SliceContent] = {}
    for each in content:
        first = by_index.get(each.index, SliceContent(index=each.index))
        by_index[each.index] = replace(
            first,
            devices=(*first.devices, *each.devices),
            shared_counters=(*first.shared_counters, *each.shared_counters),
        )
    return tuple(by_index[index] for index in sorted(by_index))


def _tainted(device: Device, taint: DeviceTaint) -> Device:
    others = tuple(each for each in device.taints if each.key != taint.key)
    return msgspec.structs.replace(device, taints=(*others, taint))


def _taint(driver_name: str, value: str) -> DeviceTaint:
    return DeviceTaint(key=f"{driver_name}/{WITHDRAWN}", value=value, effect="NoSchedule")


def _draws_on(device: Device) -> Iterator[str]:
    return (each.counter_set for each in device.consumes_counters)


def _amount(counter: Counter) -> Quantity:
    return parse_quantity(counter.value)


def _index(name: str) -> int:
    try:
        return int(name.partition("-")[0], 16)
    except ValueError:
        return _ELSEWHERE
