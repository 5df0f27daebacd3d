"""What stays published for its holders, by a table; then that the scheduler's counters never go wrong, at random."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra.objects import Counter, CounterSet, Device, DeviceCounterConsumption, DeviceTaint
from dra.slices import SliceContent
from nodedriver.keeping import Content, keep, with_remembered

DRIVER = "gpu.portico.dev"
NOT_SERVED = DeviceTaint(key=f"{DRIVER}/withdrawn", value="not-served", effect="NoSchedule")
FEWER = DeviceTaint(key=f"{DRIVER}/withdrawn", value="fewer-counters", effect="NoSchedule")
ILL = DeviceTaint(key=f"{DRIVER}/xid", value="48", effect="NoExecute", time_added="2026-01-01T00:00:00Z")


def device(name: str, memory: int, *taints: DeviceTaint) -> Device:
    """A device of the card that its name begins with, and how much of its memory it draws."""
    drawn = DeviceCounterConsumption(counter_set=name[:5], counters={"memory": Counter(value=str(memory))})
    return Device(name=name, consumes_counters=(drawn,), taints=taints)


def counters(index: int = 0, /, **memory: int) -> SliceContent:
    sets = (
        CounterSet(name=name.replace("_", "-"), counters={"memory": Counter(value=str(amount))})
        for name, amount in memory.items()
    )
    return SliceContent(index=index, shared_counters=tuple(sets))


def card(index: int, *devices: Device) -> SliceContent:
    return SliceContent(index=0x100 + index, devices=devices)


WHOLE, SLICED, OTHER = device("gpu-0", 80), device("gpu-0-timesliced", 80), device("gpu-1", 80)
BOTH: Content = (counters(gpu_0=80, gpu_1=80), card(0, WHOLE, SLICED), card(1, OTHER))
ILL_OTHER: Content = (*BOTH[:2], card(1, device("gpu-1", 80, ILL)))
# What was published, what the node would publish, what claims hold; what is published then.
ROWS: dict[str, tuple[Content, Content, set[str], Content]] = {
    "nothing changes": (BOTH, BOTH, {"gpu-0"}, BOTH),
    "the first time": ((), BOTH, set(), BOTH),
    "a kind that nobody holds": (
        BOTH, (BOTH[0], card(0, WHOLE), BOTH[2]), {"gpu-0"}, (BOTH[0], card(0, WHOLE), BOTH[2]),
    ),
    "a kind that is held": (
        BOTH, (BOTH[0], card(0, WHOLE), BOTH[2]), {"gpu-0-timesliced"},
        (BOTH[0], card(0, WHOLE, device("gpu-0-timesliced", 80, NOT_SERVED)), BOTH[2]),
    ),
    "a card that nobody holds": (BOTH, (counters(gpu_0=80), BOTH[1]), {"gpu-0"}, (counters(gpu_0=80), BOTH[1])),
    "a card that is held": (
        BOTH, (counters(gpu_0=80), BOTH[1]), {"gpu-1"},
        (counters(gpu_0=80, gpu_1=80), BOTH[1], card(1, device("gpu-1", 80, NOT_SERVED))),
    ),
    "all cards, one is held": (
        BOTH, (card(0),), {"gpu-1"},
        (counters(gpu_1=80), card(0), card(1, device("gpu-1", 80, NOT_SERVED))),
    ),
    "a held card that ails": (
        ILL_OTHER, (counters(gpu_0=80), BOTH[1]), {"gpu-1"},
        (counters(gpu_0=80, gpu_1=80), BOTH[1], card(1, device("gpu-1", 80, ILL, NOT_SERVED))),
    ),
    "fewer counters, not drawn": (BOTH, (counters(gpu_0=79, gpu_1=80), *BOTH[1:]), {"gpu-1"},
                                  (counters(gpu_0=79, gpu_1=80), *BOTH[1:])),
    "fewer counters, drawn": (
        BOTH, (counters(gpu_0=79, gpu_1=80), *BOTH[1:]), {"gpu-0"},
        (BOTH[0], card(0, device("gpu-0", 80, FEWER), device("gpu-0-timesliced", 80, FEWER)), BOTH[2]),
    ),
    "more counters": (BOTH, (counters(gpu_0=81, gpu_1=80), *BOTH[1:]), {"gpu-0"},
                      (counters(gpu_0=81, gpu_1=80), *BOTH[1:])),
}  # fmt: skip


@pytest.mark.parametrize(("before", "wanted", "held", "published"), ROWS.values(), ids=ROWS)
def test_what_is_published(before: Content, wanted: Content, held: set[str], published: Content) -> None:
    kept = keep(wanted, before, lambda: held, DRIVER)
    assert kept.content == published
    assert kept.for_holders is (published != wanted)
    again = keep(wanted, kept.content, lambda: held, DRIVER)
    assert again == kept
    assert keep(wanted, kept.content, set, DRIVER).content == wanted


def test_claims_are_looked_at_only_where_something_would_go() -> None:
    def nobody() -> set[str]:
        raise AssertionError("asked")

    keep(BOTH, BOTH, nobody, DRIVER)
    with pytest.raises(AssertionError, match="asked"):
        keep(BOTH[:2], BOTH, nobody, DRIVER)


def test_what_somebody_deletes_is_remembered() -> None:
    kept = keep((counters(gpu_0=80), BOTH[1]), BOTH, lambda: {"gpu-1"}, DRIVER).content
    for left in ((), kept[:1], kept[1:2], kept):
        again = keep((counters(gpu_0=80), BOTH[1]), with_remembered(left, kept), lambda: {"gpu-1"}, DRIVER)
        assert again.content == kept


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """Cards with counters, each with some of the same few devices."""
    cards = draw(st.sets(st.sampled_from([0, 1, 2])))
    memory = {f"gpu_{n}": draw(st.integers(40, 80)) for n in sorted(cards)}
    names = {n: draw(st.sets(st.sampled_from(["", "-timesliced", "-mig-0", "-mig-4"]))) for n in sorted(cards)}
    devices = (card(n, *(device(f"gpu-{n}{kind}", 40) for kind in sorted(names[n]))) for n in sorted(cards))
    return (counters(**memory), *devices)


def total(content: Sequence[SliceContent], card_name: str) -> int:
    sets = [each for slice_ in content for each in slice_.shared_counters if each.name == card_name]
    return int(sets[0].counters["memory"].value) if sets else 0


@given(contents(), contents(), st.data())
def test_no_held_device_goes_and_no_drawn_counter_falls(before: Content, wanted: Content, data: st.DataObject) -> None:
    names = sorted(device.name for each in before for device in each.devices)
    held = data.draw(st.sets(st.sampled_from(names))) if names else set()
    content = keep(wanted, before, lambda: held, DRIVER).content
    published = {device.name: device for each in content for device in each.devices}
    assert held <= published.keys()
    wanted_names = {device.name for each in wanted for device in each.devices}
    assert published.keys() == wanted_names | held
    for name in held:
        assert total(content, name[:5]) >= total(before, name[:5])
    assert [each.index for each in content] == sorted({each.index for each in (*wanted, *content)})
    sets = [each.name for slice_ in content for each in slice_.shared_counters]
    assert len(sets) == len(set(sets))
    assert {draw.counter_set for each in published.values() for draw in each.consumes_counters} <= set(sets)
