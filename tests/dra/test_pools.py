"""Which slices make a pool, and what is wrong where they don't: one row per rule of the scheduler's allocator."""

from __future__ import annotations

import pytest

from dra.objects import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ObjectMeta,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dra.pools import Pool, PoolID, PoolState, read_pools

CARD = PoolID("gpu.example.org", "node-a")


def slice_(
    name: str,
    *devices: Device,
    generation: int = 1,
    count: int = 1,
    counters: tuple[CounterSet, ...] = (),
    pool: str = CARD.name,
) -> ResourceSlice:
    spec = ResourceSliceSpec(
        driver=CARD.driver,
        pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
        node_name="node-a",
        devices=devices,
        shared_counters=counters,
    )
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def device(name: str, *, draws_on: str = "", counter: str = "memory") -> Device:
    draw = DeviceCounterConsumption(counter_set=draws_on, counters={counter: Counter(value="1")})
    return Device(name=name, consumes_counters=(draw,) if draws_on else ())


def counter_set(name: str) -> CounterSet:
    return CounterSet(name=name, counters={"memory": Counter(value="8")})


def only(*slices: ResourceSlice) -> Pool:
    pools = read_pools(slices)
    assert list(pools) == [CARD]
    return pools[CARD]


@pytest.mark.parametrize(
    ("slices", "state", "reason"),
    [
        pytest.param([slice_("a")], PoolState.COMPLETE, "", id="one of one"),
        pytest.param([slice_("a", count=2), slice_("b", count=2)], PoolState.COMPLETE, "", id="two of two"),
        pytest.param(
            [slice_("a", count=3), slice_("b", count=3)],
            PoolState.INCOMPLETE,
            "2 of 3 slices of generation 1 seen",
            id="one is missing",
        ),
        pytest.param(
            [slice_("a", count=2, generation=7), slice_("b", count=2, generation=6)],
            PoolState.INCOMPLETE,
            "1 of 2 slices of generation 7 seen",
            id="one is of the generation before",
        ),
        pytest.param(
            [slice_("a", generation=2), slice_("b", generation=1), slice_("c", generation=1)],
            PoolState.COMPLETE,
            "",
            id="slices of the generation before do not matter",
        ),
        pytest.param(
            [slice_("a"), slice_("b")], PoolState.INCOMPLETE, "2 of 1 slices of generation 1 seen", id="one too many"
        ),
        pytest.param(
            [slice_("a", count=2), slice_("b", count=3)],
            PoolState.INVALID,
            "its slices disagree on how many there are: 2, 3",
            id="they disagree",
        ),
        pytest.param(
            [slice_("a", device("gpu-0"), count=2), slice_("b", device("gpu-0"), count=2)],
            PoolState.INVALID,
            "device gpu-0 is published twice",
            id="a device twice",
        ),
        pytest.param(
            [slice_("a", counters=(counter_set("card"), counter_set("card")))],
            PoolState.INVALID,
            "counter set card is published twice",
            id="a counter set twice",
        ),
        pytest.param(
            [slice_("a", device("gpu-0", draws_on="card"))],
            PoolState.INVALID,
            "device gpu-0 draws on counter set card, which is not published",
            id="an unknown counter set",
        ),
        pytest.param(
            [
                slice_("a", counters=(counter_set("card"),), count=2),
                slice_("b", device("gpu-0", draws_on="card", counter="engines"), count=2),
            ],
            PoolState.INVALID,
            "device gpu-0 draws on card/engines, which is not published",
            id="an unknown counter",
        ),
        pytest.param(
            [
                slice_("b", device("gpu-0", draws_on="card"), count=2),
                slice_("a", counters=(counter_set("card"),), count=2),
            ],
            PoolState.COMPLETE,
            "",
            id="counters and devices in different slices",
        ),
    ],
)  # fmt: skip
def test_state_of_a_pool(slices: list[ResourceSlice], state: PoolState, reason: str) -> None:
    pool = only(*slices)
    assert (pool.state, pool.reason) == (state, reason)


def test_devices_come_by_slice_name_and_then_as_listed() -> None:
    pool = only(
        slice_("b", device("gpu-2"), count=2), slice_("a", device("gpu-9"), device("gpu-1"), count=2)
    )  # fmt: skip
    assert [found.name for _, found in pool.devices()] == ["gpu-9", "gpu-1", "gpu-2"]


def test_only_the_newest_generation_gives_devices() -> None:
    pool = only(slice_("a", device("new"), generation=2), slice_("b", device("old"), generation=1))
    assert [found.name for _, found in pool.devices()] == ["new"]
    assert [found.metadata.name for found in pool.outdated] == ["b"]


def test_pools_of_other_names_stand_apart() -> None:
    assert sorted(read_pools([slice_("a"), slice_("b", pool="node-b")])) == [CARD, PoolID(CARD.driver, "node-b")]
