"""Two voices: names of holders are told to those who may hear them, and to nobody else."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dra.advice.explain import explain
from dra.advice.explanation import Explanation, StepKind
from dra.advice.voice import Voice, told
from dra.names import ClaimRef, ClaimUID
from dra.objects import ResourceClaim
from tests.dra.advice.fleets import a_claim, a_device, a_fleet, a_request, a_slice, draws, held_by, shared

FOREIGN = ("foreign-space", "foreign-claim", "foreign-pod")
OWN = ("own-space", "own-claim", "own-pod")
CARD = [{"name": "card", "counters": {"slice": {"value": "4"}, "memory": {"value": "80Gi"}}}]


def ref(claim: ResourceClaim) -> ClaimRef:
    """The identity of a holder in these tests."""
    return claim.ref


def everything_held(*, share: bool) -> Explanation:
    """A wish that meets each rule with holders: in use, counters, capacity. Half is held by others, half is own."""
    devices = [
        a_device("gpu-0"),
        a_device("gpu-1"),
        a_device("part-0", **draws("2", "40Gi")),
        a_device("part-1", **draws("3", "60Gi")),
        a_device("gpu-2", **shared("80Gi")),
    ]
    held = [
        held_by(FOREIGN[0], FOREIGN[1], "gpu-0", "part-0"),
        held_by(OWN[0], OWN[1], "gpu-1"),
        held_by(FOREIGN[0], "foreign-share", "gpu-2", shareID="s", consumedCapacity={"memory": "60Gi"}),
    ]
    slices = a_slice("node-a", devices, count=2), a_slice("node-a", [], count=2, number=1, sharedCounters=CARD)
    pods = {
        ClaimRef(FOREIGN[0], FOREIGN[1], ClaimUID(f"uid-{FOREIGN[0]}-{FOREIGN[1]}")): (FOREIGN[2],),
        ClaimRef(OWN[0], OWN[1], ClaimUID(f"uid-{OWN[0]}-{OWN[1]}")): (OWN[2],),
    }
    wish = a_claim(a_request(capacity={"requests": {"memory": "40Gi"}} if share else None))
    return explain(a_fleet(*slices, held=held), "node-a", [wish], pods=pods)


def text(explanation: Explanation) -> str:
    """The explanation as JSON, as a page would get it."""
    return msgspec.json.encode(explanation).decode()


def test_the_operator_hears_every_name() -> None:
    heard = text(told(everything_held(share=True), Voice.operator()))
    assert all(name in heard for name in (*FOREIGN, *OWN))
    assert "held_by_others" not in heard


def test_own_names_are_told_and_foreign_ones_are_a_number() -> None:
    heard = text(told(everything_held(share=True), Voice.named([OWN[0]])))
    assert all(name in heard for name in OWN)
    assert not any(name in heard for name in FOREIGN)
    assert '"held_by_others":1' in heard


def test_the_numbers_voice_names_nobody() -> None:
    heard = text(told(everything_held(share=True), Voice.numbers()))
    assert not any(name in heard for name in (*FOREIGN, *OWN))


def test_devices_of_different_strangers_become_one_number() -> None:
    held = [held_by(f"space-{n}", f"claim-{n}", f"gpu-{n}") for n in range(3)]
    fleet = a_fleet(a_slice("node-a", [a_device(f"gpu-{n}") for n in range(3)]), held=held)
    (device_request,) = told(explain(fleet, "node-a", [a_claim(a_request())]), Voice.numbers()).device_requests
    (fallen,) = next(step for step in device_request.steps if step.kind is StepKind.IN_USE).fallen
    assert (fallen.count, fallen.miss.facts) == (3, {"held_by_others": 1})


@given(
    names=st.lists(st.from_regex(r"\Azz[a-z]{6,12}\Z"), min_size=3, max_size=9, unique=True),
    shares=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_no_foreign_name_is_in_the_numbers_voice(names: list[str], shares: list[bool]) -> None:
    devices = [a_device(f"gpu-{n}", **(shared("80Gi") if share else {})) for n, share in enumerate(shares)]
    held = []
    for index, (space, claim, _) in enumerate(zip(*[iter(names)] * 3, strict=False)):
        part: dict[str, Any] = {"shareID": "s", "consumedCapacity": {"memory": "70Gi"}} if shares[index] else {}
        held.append(held_by(space, claim, f"gpu-{index}", **part))
    pods = {ref(each): (names[3 * index + 2],) for index, each in enumerate(held)}
    fleet = a_fleet(a_slice("node-a", devices), held=held)
    explanation = explain(fleet, "node-a", [a_claim(a_request(count=3))], pods=pods)
    heard, all_told = text(told(explanation, Voice.numbers())), text(told(explanation, Voice.operator()))
    assert not any(name in heard for name in names)
    assert held[0].metadata.name in all_told
