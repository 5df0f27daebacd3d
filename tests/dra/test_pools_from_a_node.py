"""A pool as one node sees it: what concerns the node, which generation, whether all is there. One row a rule."""

from __future__ import annotations

import pytest

from dra.allocation import compile_slice
from dra.errors import InvalidObjectError
from dra.objects import ResourceSlice
from dra.pools import PoolState, Viewpoint, gather
from tests.dra.builders import NODE, Json, a_device, a_slice, some_cards, some_devices

HERE = Viewpoint(NODE, {"zone": "z1"})
DRAWING = a_slice([a_device("gpu-0", draws={"card": {"slots": 1}})], name="drawing", count=2)
GROUPED = a_slice(
    [a_device("gpu-0") | {"consumesCounters": [{"counterSet": "card", "compatibilityGroups": ["a"]}]}],
    name="grouped",
    count=2,
)
FAR: Json = {"nodeName": "node-b"}


def in_zone(value: str, operator: str = "In") -> Json:
    """A node selector on the label `zone`."""
    expression = {"key": "zone", "operator": operator, "values": [value]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def slices(*names: str, **fields: object) -> list[ResourceSlice]:
    """Slices of one device each, named as they are."""
    return [a_slice([a_device(f"gpu-{name}")], name=name, **fields) for name in names]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("published", "state", "devices"),
    [
        pytest.param(slices("a"), PoolState.COMPLETE, ["gpu-a"], id="all there"),
        pytest.param(slices("b", "a", count=2), PoolState.COMPLETE, ["gpu-a", "gpu-b"], id="by name"),
        pytest.param(slices("a", count=2), PoolState.INCOMPLETE, [], id="one is missing"),
        pytest.param(slices("a", "b"), PoolState.INCOMPLETE, [], id="one too many"),
        pytest.param([*slices("a"), *slices("b", generation=2)], PoolState.COMPLETE, ["gpu-b"], id="only the newest"),
        pytest.param(
            [*slices("a", count=2), *slices("b", count=2, **FAR)],
            PoolState.COMPLETE,
            ["gpu-a"],
            id="slices elsewhere count",
        ),
        pytest.param(
            [*slices("a"), *slices("b", generation=2, **FAR)],
            PoolState.COMPLETE,
            ["gpu-a"],
            id="an old generation that is all here, whatever is newer elsewhere",
        ),
        pytest.param(
            [*slices("a", count=2), *slices("b", generation=2, **FAR)],
            None,
            [],
            id="obsolete: being replaced elsewhere",
        ),
        pytest.param(slices("a", **FAR), None, [], id="nothing here"),
        pytest.param(slices("a", **in_zone("z1")), PoolState.COMPLETE, ["gpu-a"], id="selected"),
        pytest.param(slices("a", **in_zone("z2")), None, [], id="not selected"),
        pytest.param(slices("a", allNodes=True), PoolState.COMPLETE, ["gpu-a"], id="for all nodes"),
        pytest.param([a_slice([*some_devices(1), *some_devices(1)])], PoolState.INVALID, [], id="a name twice"),
        pytest.param([DRAWING, a_slice(name="z", count=2)], PoolState.INVALID, [], id="no such counter set"),
        pytest.param(
            [DRAWING, a_slice(name="z", count=2, counters={"card": {"other": 1}})],
            PoolState.INVALID,
            [],
            id="no such counter",
        ),
        pytest.param(
            [a_slice(name=name, count=2, counters={"card": {"slots": 1}}) for name in "ab"],
            PoolState.INVALID,
            [],
            id="a counter set twice",
        ),
        pytest.param(
            [GROUPED, a_slice(some_devices(1), name="z", count=2)],
            PoolState.INCOMPLETE,
            [],
            id="groups with their gate off",
        ),
    ],
)
def test_a_pool(published: list[ResourceSlice], state: PoolState | None, devices: list[str]) -> None:
    seen = gather([compile_slice(each) for each in published], HERE)

    assert (seen and seen.state) == state
    assert [name for each in (seen.slices if seen else ()) for name in each.layout.names] == devices


def test_counters_are_found_in_slices_for_other_nodes() -> None:
    counters = a_slice(name="z", count=2, counters={"card": {"slots": 1}}, nodeName="node-b")

    seen = gather([compile_slice(each) for each in (DRAWING, counters)], HERE)

    assert seen is not None
    assert [each.name for each in seen.counter_slices] == ["z"]


def test_with_partitionable_devices_off_slices_of_counters_are_not_there() -> None:
    view = Viewpoint(NODE, {}, partitionable_devices=False)

    seen = gather([compile_slice(each) for each in some_cards(1)], view)

    assert seen is not None
    assert (seen.state, seen.counter_slices) == (PoolState.COMPLETE, ())


def test_binding_conditions_are_noticed() -> None:
    seen = gather([compile_slice(a_slice([a_device("gpu-0", bindingConditions=["ready"])]))], HERE)

    assert seen is not None
    assert seen.binding


def test_a_selector_that_does_not_parse_is_an_error() -> None:
    with pytest.raises(InvalidObjectError, match="needs exactly one integer"):
        gather([compile_slice(each) for each in slices("a", **in_zone("many", "Gt"))], HERE)
