"""In which order devices are tried, and when they are given back: the first solution is the answer."""

from __future__ import annotations

import pytest

from dra.allocation import Allocated, Answer, Refused
from dra.objects import ResourceClaim, ResourceSlice
from tests.dra.builders import (
    a_choice,
    a_claim,
    a_device,
    a_holder,
    a_request,
    a_slice,
    a_snapshot,
    an_alternative,
    ask_for,
    of_model,
    some_cards,
    some_devices,
)

HALF, WHOLE = of_model("half"), of_model("whole")


def devices(answer: Answer) -> list[str]:
    """Names of what was allocated, with all claims one after the other."""
    assert isinstance(answer, Allocated), answer
    return [result.device for each in answer.results for result in each.devices.results]


ORDERS = [
    pytest.param(
        [a_slice([a_device("b"), a_device("a")])], [a_claim()], ["b"], id="devices as they stand in the slice"
    ),
    pytest.param(
        [
            a_slice([a_device("late")], name="slice-2", count=2),
            a_slice([a_device("early")], name="slice-10", count=2),
        ],
        [a_claim()],
        ["early"],
        id="slices by name, as strings",
    ),
    pytest.param(
        [
            a_slice([a_device("late")], name="s1", pool="pool-b"),
            a_slice([a_device("early")], name="s2", pool="pool-a"),
        ],
        [a_claim()],
        ["early"],
        id="pools by name",
    ),
    pytest.param(
        [
            a_slice([a_device("late")], name="s1", driver="z.example.com"),
            a_slice([a_device("early")], name="s2", pool="pool-z"),
        ],
        [a_claim()],
        ["early"],
        id="drivers before pools",
    ),
    pytest.param(
        [
            a_slice([a_device("late", bindingConditions=["ready"])], name="s1", pool="pool-a"),
            a_slice([a_device("early")], name="s2", pool="pool-b"),
        ],
        [a_claim()],
        ["early"],
        id="pools with binding conditions last",
    ),
    pytest.param(
        [a_slice(some_devices(3))],
        [a_claim(a_request("b"), a_request("a")), a_claim(name="second")],
        ["gpu-0", "gpu-1", "gpu-2"],
        id="requests and claims as they stand",
    ),
    pytest.param(
        some_cards(1),
        [a_claim(a_request(count=2))],
        ["card-0-half-0", "card-0-half-1"],
        id="the whole is given back for two halves",
    ),
    pytest.param(
        some_cards(2),
        [a_claim(a_request("any"), a_request("halves", HALF, count=2))],
        ["card-0-whole", "card-1-half-0", "card-1-half-1"],
        id="a later request looks at all devices again",
    ),
    pytest.param(
        some_cards(1),
        [a_claim(a_request("any"), a_request("half", HALF))],
        ["card-0-half-0", "card-0-half-1"],
        id="an earlier request gives way to a later one",
    ),
    pytest.param(
        some_cards(1),
        [
            a_claim(a_choice("r", an_alternative("whole", WHOLE), an_alternative("half", HALF))),
            a_claim(a_request("h", HALF), name="c"),
        ],
        ["card-0-half-0", "card-0-half-1"],
        id="the first alternative gives way to a later claim",
    ),
]


@pytest.mark.parametrize(("slices", "claims", "expected"), ORDERS)
def test_the_order(slices: list[ResourceSlice], claims: list[ResourceClaim], expected: list[str]) -> None:
    assert devices(ask_for(a_snapshot(*slices), *claims)) == expected


def test_a_device_in_use_is_passed_over() -> None:
    snapshot = a_snapshot(a_slice(some_devices(2)), held=[a_holder("gpu-0")])

    assert devices(ask_for(snapshot)) == ["gpu-1"]


def test_all_claims_or_none() -> None:
    snapshot = a_snapshot(a_slice(some_devices(1)))

    assert ask_for(snapshot, a_claim(), a_claim(name="second")) == Refused()


def test_a_claim_without_requests_fits_everywhere() -> None:
    answer = ask_for(a_snapshot(), a_claim(requests=[]))

    assert isinstance(answer, Allocated)
    assert answer.results[0].devices.results == ()


def test_the_result_names_the_alternative() -> None:
    choice = a_choice("r", an_alternative("three", count=3), an_alternative("two", count=2))

    answer = ask_for(a_snapshot(a_slice(some_devices(2))), a_claim(choice))

    assert isinstance(answer, Allocated)
    assert [each.request for each in answer.results[0].devices.results] == ["r/two", "r/two"]


def test_more_devices_than_a_claim_may_have_let_the_next_alternative_in() -> None:
    choice = a_choice("r", an_alternative("many", count=20), an_alternative("few", count=2))

    answer = ask_for(a_snapshot(a_slice(some_devices(40))), a_claim(a_request("first", count=20), choice))

    assert isinstance(answer, Allocated)
    assert answer.results[0].devices.results[-1].request == "r/few"
