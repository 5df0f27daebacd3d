"""A card as one counter set, and what each of its devices draws from it (KEP-4815, partitionable devices).

Two MIG placements exclude each other exactly when they share a memory slice or an engine sum runs out; the whole card
draws everything. Compute slices need no counter: the legal starts keep their sum within the card.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from dra.objects import Counter, CounterSet, DeviceCounterConsumption
from dra.quantity import Format, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a card or a MIG instance holds: memory in bytes, the others are counts (nvmlGpuInstanceProfileInfo_v3_t)."""

    memory: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int


def card_contents(memory: int, profiles: Iterable[Contents]) -> Contents:
    """What a card of so many bytes holds: of everything else the most that any of its profiles has.

    NVML tells engine counts per profile only. Without profiles the memory alone is known.
    """
    every = tuple(profiles)
    most = {f.name: max((getattr(one, f.name) for one in every), default=0) for f in fields(Contents)}
    return Contents(**most | {"memory": max(memory, most["memory"])})


def counter_set(name: str, card: Contents, *, memory_slices: int) -> CounterSet:
    """The counters of a card. What the card has none of is left out."""
    return CounterSet(name=name, counters=_counters(card, range(memory_slices)))


def draw(counter_set_name: str, contents: Contents, memory_slices: range) -> DeviceCounterConsumption:
    """What a MIG instance with these contents, on these memory slices, draws from its card."""
    return DeviceCounterConsumption(counter_set=counter_set_name, counters=_counters(contents, memory_slices))


def draw_everything(from_set: CounterSet) -> DeviceCounterConsumption:
    """What a device that needs the whole card draws."""
    return DeviceCounterConsumption(counter_set=from_set.name, counters=from_set.counters)


def _counters(contents: Contents, memory_slices: range) -> dict[str, Counter]:
    counts = {f.name.replace("_", "-"): getattr(contents, f.name) for f in fields(Contents)}
    memory = {"memory": Counter(value=str(Quantity.of(counts.pop("memory"), Format.BINARY_SI)))}
    slices = {f"memory-slice-{i}": 1 for i in memory_slices}
    return memory | {name: Counter(value=str(count)) for name, count in (counts | slices).items() if count}
