"""Questions that the scheduler's own search does not end: answered in few steps, with a word about the scheduler."""

from __future__ import annotations

import pytest

from dra.allocation import Allocated, Failed, Refused, allocate_on
from dra.allocation.allocate import searched
from dra.objects import ResourceClaim, ResourceSlice
from tests.dra.builders import (
    DRIVER,
    NODE,
    Json,
    a_claim,
    a_device,
    a_request,
    a_slice,
    a_snapshot,
    ask_for,
    of_model,
    some_cards,
    some_devices,
)

HALF, WHOLE = of_model("half"), of_model("whole")
NUMBERED = a_slice([a_device(f"gpu-{number}", attributes={"n": number}) for number in range(24)])
FIVE_AND_SEVEN = a_claim(a_request("w", WHOLE, count=5), a_request("h", HALF, count=7))
DISTINCT: list[Json] = [{"distinctAttribute": f"{DRIVER}/n"}]

HARD = [
    pytest.param([a_slice(some_devices(24))], [a_claim(a_request(count=25))], id="25 of 24"),
    pytest.param([a_slice(some_devices(24))], [a_claim(*(a_request(f"r{n}") for n in range(25)))], id="in 25 requests"),
    pytest.param([a_slice(some_devices(24))], [a_claim(name=f"c{n}") for n in range(25)], id="in 25 claims"),
    pytest.param([NUMBERED], [a_claim(a_request(count=25), constraints=DISTINCT)], id="25 of 24 distinct ones"),
    pytest.param(some_cards(12), [a_claim(a_request(count=25))], id="25 on 12 cards of 2 halves"),
    pytest.param(some_cards(8), [FIVE_AND_SEVEN], id="5 wholes and 7 halves"),
]


@pytest.mark.parametrize(("slices", "claims"), HARD)
def test_a_refusal_at_once(slices: list[ResourceSlice], claims: list[ResourceClaim]) -> None:
    view = a_snapshot(*slices).node(NODE)

    answer, steps = searched(view, a_snapshot().classes, claims)

    assert isinstance(answer, Refused)
    assert steps < 3000
    assert answer == allocate_on(view, a_snapshot().classes, claims)


@pytest.mark.parametrize(("slices", "claims"), HARD[:4])
def test_the_scheduler_times_out_there(slices: list[ResourceSlice], claims: list[ResourceClaim]) -> None:
    answer = ask_for(a_snapshot(*slices), *claims)

    assert isinstance(answer, Refused)
    (warning,) = answer.warnings
    assert warning.seconds > 10
    assert warning.steps > 2**22


def test_no_warning_where_the_scheduler_ends_soon() -> None:
    assert ask_for(a_snapshot(a_slice(some_devices(8))), a_claim(a_request(count=9))) == Refused()


def test_32_halves_on_16_cards_are_found_without_trying_wholes_again_and_again() -> None:
    view = a_snapshot(*some_cards(16)).node(NODE)

    answer, steps = searched(view, a_snapshot().classes, [a_claim(a_request(count=32))])

    assert isinstance(answer, Allocated)
    assert steps < 3000


def test_twins_are_told_apart_where_all_devices_must_keep_a_constraint() -> None:
    """Taking the last device leaves the first ones to the claim for all, which then breaks its constraint: an error."""
    roots = ["a"] * 20 + ["b", "a"]
    devices = [a_device(f"gpu-{number}", attributes={"root": root}) for number, root in enumerate(roots)]
    everything = a_claim(
        a_request("all", allocationMode="All"), name="c", constraints=[{"matchAttribute": f"{DRIVER}/root"}]
    )

    answer = ask_for(a_snapshot(a_slice(devices)), a_claim(), everything)

    assert isinstance(answer, Failed)
    assert answer.message.startswith(f"claim default/c, request all: cannot add device {DRIVER}/pool-a/gpu-20")


def test_what_does_not_fit_alone_is_refused_whatever_comes_before() -> None:
    snapshot = a_snapshot(*some_cards(8))
    claims = [a_claim(a_request(count=3), name=f"c{number}") for number in range(4)]

    _, steps = searched(snapshot.node(NODE), snapshot.classes, [*claims, a_claim(a_request("r", WHOLE, count=9))])

    assert steps < 100


def test_past_its_budget_the_search_says_so() -> None:
    claims = [a_claim(*(a_request(f"r{n}", count=2) for n in range(2)), name=f"c{number}") for number in range(70)]

    answer = ask_for(a_snapshot(*some_cards(40)), *claims)

    assert isinstance(answer, Failed)
    assert (answer.kind, answer.code) == ("budget", "budget")
