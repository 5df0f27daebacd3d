"""What is left of a card's counters, and which device still fits."""

from __future__ import annotations

import pytest

from dra.counters import CounterState, compile_draws, compile_totals, counters_left, fits, remaining
from dra.objects import Counter, CounterSet, Device, DeviceCounterConsumption
from dra.quantity import parse_quantity

CARD = CounterSet(name="card", counters={"memory": Counter(value="80Gi"), "slice-0": Counter(value="1")})


def device(name: str, **counters: str) -> Device:
    drawn = {counter.replace("_", "-"): Counter(value=value) for counter, value in counters.items()}
    return Device(name=name, consumes_counters=(DeviceCounterConsumption(counter_set="card", counters=drawn),))


WHOLE = device("whole", memory="80Gi", slice_0="1")
FIRST = device("first", memory="40Gi", slice_0="1")
SECOND = device("second", memory="40Gi")
FREE = Device(name="without counters")


@pytest.mark.parametrize(
    ("allocated", "memory", "slice_0"),
    [
        pytest.param([], "80Gi", "1", id="nothing"),
        pytest.param([FIRST], "40Gi", "0", id="a part"),
        pytest.param([FIRST, SECOND], "0", "0", id="both parts"),
        pytest.param([WHOLE], "0", "0", id="all"),
        pytest.param([FREE], "80Gi", "1", id="a device that draws nothing"),
        pytest.param([WHOLE, SECOND], "-40Gi", "0", id="overdrawn"),
    ],
)
def test_left(allocated: list[Device], memory: str, slice_0: str) -> None:
    left = counters_left([CARD], allocated)
    assert left["card"]["memory"] == CounterState(parse_quantity("80Gi"), parse_quantity(memory))
    assert left["card"]["slice-0"] == CounterState(parse_quantity("1"), parse_quantity(slice_0))


@pytest.mark.parametrize(
    ("allocated", "asked", "expected"),
    [
        pytest.param([], WHOLE, True, id="all of a free card"),
        pytest.param([SECOND], FIRST, True, id="the other part"),
        pytest.param([FIRST], SECOND, True, id="the other part, the other way"),
        pytest.param([FIRST], WHOLE, False, id="the whole beside a part"),
        pytest.param([WHOLE], SECOND, False, id="a part beside the whole"),
        pytest.param([WHOLE], FREE, True, id="a device that draws nothing"),
    ],
)
def test_fits(allocated: list[Device], asked: Device, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert fits(asked, counters_left([CARD], allocated)) is expected


def test_compiled_counters_are_nano_units_by_set_and_name() -> None:
    sets = [CounterSet(name="card", counters={"memory": Counter(value="1"), "slots": Counter(value="500m")})]
    draw = DeviceCounterConsumption(
        counter_set="card", counters={"slots": Counter(value="2"), "gone": Counter(value="1")}
    )

    totals, draws = compile_totals(sets), compile_draws([draw])

    assert totals == {("card", "memory"): 10**9, ("card", "slots"): 5 * 10**8}
    assert draws == ((("card", "gone"), 10**9), (("card", "slots"), 2 * 10**9))
    # Below zero where more is drawn than there is; a counter that is not published is left out.
    assert remaining(totals, [draws]) == {("card", "memory"): 10**9, ("card", "slots"): -15 * 10**8}
