"""The state of a device, by what is published and what is allocated: one row per rule."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dra.objects import DeviceRequestAllocationResult, ResourceSlice, decode
from dra.pools import Pool, read_pools
from gpuinventory.projection import DeviceRow, DeviceState, project
from tests.gpuinventory.fleet import H100_MEMORY, device, slices_of

NODE = "node-a"
MIG = "gpu-0-mig-3g40gb-0"
OTHER_MIG = "gpu-0-mig-3g40gb-4"


def pool_of(bodies: list[bytes]) -> Pool:
    (pool,) = read_pools(decode(body, ResourceSlice) for body in bodies).values()
    return pool


def rows(pool: Pool | None, *allocated: dict[str, Any]) -> dict[str, DeviceRow]:
    results = [msgspec.convert(each, DeviceRequestAllocationResult) for each in allocated]
    allocations = {result.device: [other for other in results if other.device == result.device] for result in results}
    return {row.name: row for row in project(pool, allocations).devices}


@pytest.mark.parametrize(
    ("allocated", "expected"),
    [
        pytest.param([], {"gpu-0": ("free", 0), MIG: ("free", 0)}, id="nothing is allocated"),
        pytest.param(
            [device(NODE, "gpu-0", percent=100)], {"gpu-0": ("held", 100), MIG: ("excluded", 0)}, id="the whole card"
        ),
        pytest.param(
            [device(NODE, "gpu-0", percent=25)], {"gpu-0": ("partly", 25), MIG: ("excluded", 0)}, id="a share of it"
        ),
        pytest.param(
            [device(NODE, "gpu-0", percent=25), device(NODE, "gpu-0", percent=75)],
            {"gpu-0": ("held", 100)},
            id="shares that fill it",
        ),
        pytest.param(
            [device(NODE, MIG, percent=100)],
            {
                "gpu-0": ("excluded", 0),
                MIG: ("held", 100),
                OTHER_MIG: ("free", 0),
                "gpu-0-mig-4g40gb-0": ("excluded", 0),
            },
            id="a MIG part leaves the parts beside it free",
        ),
        pytest.param(
            [device(NODE, "gpu-0", percent=100, admin=True)], {"gpu-0": ("free", 0)}, id="admin access only looks"
        ),
        pytest.param(
            [device(NODE, "gpu-9", percent=100)], {"gpu-9": ("missing", 0), "gpu-0": ("free", 0)}, id="not published"
        ),
    ],
)
def test_state(allocated: list[dict[str, Any]], expected: dict[str, tuple[str, int]]) -> None:
    found = rows(pool_of(slices_of(NODE)), *allocated)
    assert {name: (found[name].state.value, found[name].percent_used) for name in expected} == expected


def test_a_tainted_card_is_blocked_with_all_its_parts_even_while_held() -> None:
    found = rows(pool_of(slices_of(NODE, unclean=[0])), device(NODE, "gpu-0", percent=100))
    assert {row.state for row in found.values()} == {DeviceState.BLOCKED}
    assert (found["gpu-0"].holders, found["gpu-0"].tainted) == (1, True)


def test_a_pool_that_is_being_updated_is_unknown_and_keeps_what_older_slices_tell() -> None:
    old, new = slices_of(NODE, cards=2), slices_of(NODE, cards=2)
    pool = pool_of(
        [*(body.replace(b'"generation":1', b'"generation":2') for body in with_spaces_removed(new[:2])), old[2]]
    )
    found = rows(pool)
    assert {row.state for row in found.values()} == {DeviceState.UNKNOWN}
    assert {"gpu-0", "gpu-1"} <= found.keys()


def test_a_pool_without_slices_shows_what_is_still_held() -> None:
    assert {name: row.state for name, row in rows(None, device(NODE, "gpu-3", percent=50)).items()} == {
        "gpu-3": DeviceState.MISSING
    }


def test_columns_of_a_card_and_of_a_part() -> None:
    found = rows(pool_of(slices_of(NODE)))
    card, part = found["gpu-0"], found[MIG]
    assert (card.product, card.device_type, card.mig_profile) == ("NVIDIA H100 80GB HBM3", "Physical", "")
    assert (part.device_type, part.mig_profile, part.counter_set) == ("MIG", "3g.40gb", "gpu-0")
    assert card.node == NODE
    assert part.memory < H100_MEMORY / 2 < card.memory < H100_MEMORY


def test_counters_of_a_card_with_a_part_taken() -> None:
    pool = pool_of(slices_of(NODE))
    result = msgspec.convert(device(NODE, MIG, percent=100), DeviceRequestAllocationResult)
    (counters,) = project(pool, {MIG: [result]}).counter_sets.values()
    left = {name: counters[name] for name in ("memory-slice-0", "memory-slice-3", "memory-slice-4", "memory-slice-7")}
    assert left == {
        "memory-slice-0": ("0", "1"),
        "memory-slice-3": ("0", "1"),
        "memory-slice-4": ("1", "1"),
        "memory-slice-7": ("1", "1"),
    }


def test_a_card_of_a_driver_with_other_words() -> None:
    """Attributes under a full domain, a share without `sharePercent`: the most used capacity counts."""
    body = b"""{"metadata": {"name": "s"}, "spec": {"driver": "gpu.vendor.example", "nodeName": "n", "pool":
      {"name": "n", "resourceSliceCount": 1}, "devices": [{"name": "card0", "allowMultipleAllocations": true,
      "attributes": {"gpu.vendor.example/model": {"string": "V9"}},
      "capacity": {"memory": {"value": "16Gi"}, "cores": {"value": "100"}}}]}}"""
    result = DeviceRequestAllocationResult(
        request="r",
        driver="gpu.vendor.example",
        pool="n",
        device="card0",
        consumed_capacity={"memory": "4Gi", "cores": "10"},
    )
    (row,) = project(pool_of([body]), {"card0": [result]}).devices
    assert (row.product, row.memory, row.state, row.percent_used) == ("V9", 16 * 1024**3, DeviceState.PARTLY_HELD, 25)


def with_spaces_removed(bodies: list[bytes]) -> list[bytes]:
    return [msgspec.json.encode(msgspec.json.decode(body)) for body in bodies]
