"""Shared counters of a pool: what is left when some devices are allocated, and whether a device still fits. Pure.

A device is charged once while any part of it is allocated (KEP-4815 with KEP-5075): callers name devices, not shares.
Amounts of the compiled form are whole numbers of nano units, as `Quantity.nano`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dra.objects import CounterSet, Device, DeviceCounterConsumption
from dra.quantity import Quantity, parse_quantity

type Left = Mapping[str, Mapping[str, CounterState]]
type CounterKey = tuple[str, str]
"""Counter set and counter; unique in a pool."""
type Draw = tuple[CounterKey, int]
"""What a device takes of one counter, in nano units."""


@dataclass(frozen=True, slots=True)
class CounterState:
    """One counter: what there is in all, and what is left. `left` is negative when more is drawn than there is."""

    total: Quantity
    left: Quantity


def counters_left(counter_sets: Iterable[CounterSet], allocated: Iterable[Device]) -> Left:
    """By counter set and counter name. A draw on an unknown counter is left out: the pool is invalid by then."""
    totals = {
        each.name: {name: parse_quantity(counter.value) for name, counter in each.counters.items()}
        for each in counter_sets
    }
    left = {name: dict(counters) for name, counters in totals.items()}
    for device in allocated:
        for draw in device.consumes_counters:
            counters = left.get(draw.counter_set, {})
            for name, counter in draw.counters.items():
                if name in counters:
                    counters[name] -= parse_quantity(counter.value)
    return {
        set_name: {name: CounterState(total, left[set_name][name]) for name, total in counters.items()}
        for set_name, counters in totals.items()
    }


def fits(device: Device, left: Left) -> bool:
    """Whether every counter that the device draws on has enough left."""
    for draw in device.consumes_counters:
        counters = left[draw.counter_set]
        for name, counter in draw.counters.items():
            if parse_quantity(counter.value).nano > counters[name].left.nano:
                return False
    return True


def compile_draws(consumption: Iterable[DeviceCounterConsumption]) -> tuple[Draw, ...]:
    """What a device takes, counter by counter, in a fixed order. InvalidQuantityError on a malformed amount."""
    return tuple(
        ((each.counter_set, name), parse_quantity(counter.value).nano)
        for each in consumption
        for name, counter in sorted(each.counters.items())
    )


def compile_totals(counter_sets: Iterable[CounterSet]) -> dict[CounterKey, int]:
    """What each counter holds in all."""
    return {
        (each.name, name): parse_quantity(counter.value).nano
        for each in counter_sets
        for name, counter in each.counters.items()
    }


def remaining(totals: Mapping[CounterKey, int], drawn: Iterable[tuple[Draw, ...]]) -> dict[CounterKey, int]:
    """What is left of each counter after those devices; below zero where more is drawn than there is.

    A draw on a counter that is not published is ignored, as `checkAvailableCounters` does for allocated devices.
    """
    left = dict(totals)
    for draws in drawn:
        for key, amount in draws:
            if key in left:
                left[key] -= amount
    return left
