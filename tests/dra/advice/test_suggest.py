"""What is suggested for a wish that does not fit: one row a kind of change, its value counted by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from dra.advice.explanation import ChangeCode, Fact
from dra.advice.suggest import LIMIT, suggest
from dra.allocation import Allocated, Snapshot, allocate
from dra.objects import ResourceClaim
from tests.dra.advice.fleets import (
    MEMORY_80,
    a_card,
    a_claim,
    a_class,
    a_device,
    a_fleet,
    a_request,
    a_slice,
    asks_for,
    held_by,
    shared,
)

MODEL = 'device.attributes["gpu.example.com"].model == "{}"'
SMALL = [a_device("gpu-0", memory="40Gi"), a_device("gpu-1", memory="64Gi"), a_device("gpu-2", memory="24Gi")]
ROOTS = [a_device(f"gpu-{n}", attributes={"root": f"pci{n}"}) for n in range(2)]
TAINTED = a_device("gpu-0", taints=[{"key": "example.com/drain", "value": "now", "effect": "NoSchedule"}])
EVICTING = a_device("gpu-0", taints=[{"key": "example.com/broken", "effect": "NoExecute"}])


@dataclass(frozen=True, kw_only=True)
class Row:
    """A fleet, a wish that does not fit there, and the change that must be suggested."""

    name: str
    fleet: Snapshot
    wish: ResourceClaim
    code: ChangeCode
    before: Fact
    after: Fact
    nodes: int = 1
    classes: Sequence[str] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)


ROWS = [
    Row(
        name="the largest count that fits",
        fleet=a_fleet(
            a_slice("node-a", [a_device("gpu-0"), a_device("gpu-1")]), a_slice("node-b", [a_device("gpu-0")])
        ),
        wish=a_claim(a_request(count=3)),
        code=ChangeCode.COUNT,
        before=3,
        after=2,
    ),
    Row(
        name="the largest memory that a device has, below what is asked",
        fleet=a_fleet(a_slice("node-a", SMALL)),
        wish=a_claim(a_request("gpu", MEMORY_80)),
        code=ChangeCode.LITERAL,
        before="80Gi",
        after="64Gi",
        facts={"relation": ">=", "expression": MEMORY_80.replace("80Gi", "64Gi")},
    ),
    Row(
        name="no value whose devices are in use",
        fleet=a_fleet(a_slice("node-a", SMALL), held=[held_by("theirs", "training", "gpu-1")]),
        wish=a_claim(a_request("gpu", MEMORY_80)),
        code=ChangeCode.LITERAL,
        before="80Gi",
        after="40Gi",
    ),
    Row(
        name="another product, on as many nodes as have it",
        fleet=a_fleet(*(a_slice(node, [a_device("gpu-0", attributes={"model": "a100"})]) for node in ("n1", "n2"))),
        wish=a_claim(a_request("gpu", MODEL.format("h100"))),
        code=ChangeCode.LITERAL,
        before="h100",
        after="a100",
        nodes=2,
    ),
    Row(
        name="the capacity that a shared device has left",
        fleet=a_fleet(
            a_slice("node-a", [a_device("gpu-0", **shared("80Gi"))]),
            held=[held_by("theirs", "small", "gpu-0", shareID="s", consumedCapacity={"memory": "50Gi"})],
        ),
        wish=a_claim(a_request(**asks_for("40Gi"))),
        code=ChangeCode.CAPACITY,
        before="40Gi",
        after="30Gi",
        facts={"capacity": "memory"},
    ),
    Row(
        name="without the constraint that keeps them apart",
        fleet=a_fleet(a_slice("node-a", ROOTS)),
        wish=a_claim(a_request(count=2), constraints=[{"matchAttribute": "gpu.example.com/root"}]),
        code=ChangeCode.CONSTRAINT,
        before="gpu.example.com/root",
        after="",
    ),
    Row(
        name="with a taint tolerated, named as such",
        fleet=a_fleet(a_slice("node-a", [TAINTED])),
        wish=a_claim(a_request()),
        code=ChangeCode.TOLERATION,
        before="",
        after="example.com/drain",
        facts={"value": "now", "effect": "NoSchedule"},
    ),
    Row(
        name="another class that was given",
        fleet=a_fleet(a_slice("node-a", SMALL), classes=[a_class("gpu", "false"), a_class("other")]),
        wish=a_claim(a_request()),
        code=ChangeCode.DEVICE_CLASS,
        before="gpu",
        after="other",
        classes=("gpu", "other", "absent"),
    ),
    Row(
        name="fewer partitions of one card",
        fleet=a_card(("2", "40Gi"), ("2", "40Gi"), ("2", "40Gi")),
        wish=a_claim(a_request(count=3)),
        code=ChangeCode.COUNT,
        before=3,
        after=2,
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_change_that_fits_is_suggested(row: Row) -> None:
    found = [each for each in suggest(row.fleet, [row.wish], classes=row.classes) if each.code is row.code]
    assert [(each.facts["from"], each.facts["to"], each.facts["nodes"]) for each in found] == [
        (row.before, row.after, row.nodes)
    ]
    assert row.facts.items() <= found[0].facts.items()
    answers = [allocate(row.fleet, node, found[0].resource_claims) for node in row.fleet.nodes]
    assert sum(isinstance(answer, Allocated) for answer in answers) == row.nodes


def test_nothing_is_suggested_for_what_fits() -> None:
    assert suggest(a_fleet(a_slice("node-a", SMALL)), [a_claim(a_request())]) == ()


def test_a_taint_that_ends_pods_is_never_tolerated_by_suggestion() -> None:
    assert suggest(a_fleet(a_slice("node-a", [EVICTING])), [a_claim(a_request())]) == ()


def test_nothing_is_suggested_after_which_the_scheduler_still_aborts() -> None:
    fleet = a_fleet(a_slice("node-a", SMALL))
    assert suggest(fleet, [a_claim(a_request("gpu", 'device.attributes["gpu.example.com"].absent == "x"'))]) == ()


def test_the_smallest_changes_come_first_and_are_few() -> None:
    devices = [a_device(f"gpu-{n}", memory="79Gi", attributes={"root": f"pci{n % 2}"}) for n in range(3)]
    wish = a_claim(
        a_request("gpu", MEMORY_80, MODEL.format("h100"), count=3),
        constraints=[{"matchAttribute": "gpu.example.com/model"}],
    )
    found = suggest(a_fleet(a_slice("node-a", devices)), [wish])
    assert 0 < len(found) <= LIMIT
    assert (found[0].code, found[0].facts["to"]) == (ChangeCode.LITERAL, "79Gi")
