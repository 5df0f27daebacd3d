"""What holds of every answer, on small random clusters with counters, shares, constraints and alternatives."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dra.allocation import Allocated, Failed, Refused, Snapshot
from dra.allocation.check import violations
from dra.objects import AllocationResult, ResourceClaim, ResourceSlice
from tests.dra.builders import (
    DRIVER,
    NODE,
    Json,
    a_choice,
    a_claim,
    a_device,
    a_request,
    a_slice,
    a_snapshot,
    an_alternative,
    ask_for,
)

EXAMPLES = settings(max_examples=150, deadline=None, derandomize=True)
CARDS = {"card-0": {"slots": 4}, "card-1": {"slots": 3}}


@st.composite
def devices(draw: st.DrawFn, name: str) -> Json:
    """A device of up to two kinds of model, drawing on a card or not, shared or not."""
    draws = draw(st.sampled_from([{}, *({card: {"slots": slots}} for card in CARDS for slots in (1, 2, 3))]))
    attributes = {"model": draw(st.sampled_from(["a", "b"])), "root": draw(st.integers(0, 2))}
    fields: Json = draw(st.sampled_from([{}, {"shared": True, "capacity": {"memory": "4"}}]))
    return a_device(name, draws=draws, attributes=attributes, **fields)


@st.composite
def clusters(draw: st.DrawFn) -> list[ResourceSlice]:
    """One pool: counters and up to 7 devices in two slices."""
    names = [f"gpu-{number}" for number in range(draw(st.integers(1, 7)))]
    made = [draw(devices(name)) for name in names]
    cut = draw(st.integers(0, len(made)))
    counters = a_slice(name="counters", counters=CARDS, count=3)
    return [counters, a_slice(made[:cut], name="first", count=3), a_slice(made[cut:], name="second", count=3)]


@st.composite
def wishes(draw: st.DrawFn, *, constrained: bool = True) -> ResourceClaim:
    """A claim with one or two device requests of up to three devices."""
    requests = []
    for name in ("x", "y")[: draw(st.integers(1, 2))]:
        model = f'device.attributes["{DRIVER}"].model == "{draw(st.sampled_from(["a", "b"]))}"'
        chosen = draw(st.sampled_from([(), (model,)]))
        one = a_request(name, *chosen, count=draw(st.integers(1, 3)))
        requests.append(
            draw(st.sampled_from([one, a_choice(name, an_alternative("s", model, count=3), an_alternative("t"))]))
        )
    kinds = ("matchAttribute", "distinctAttribute")
    constraint = st.sampled_from([[], *([{kind: f"{DRIVER}/root"}] for kind in kinds)])
    return a_claim(*requests, constraints=draw(constraint) if constrained else [])


def as_held(claim: ResourceClaim, result: AllocationResult, name: str) -> ResourceClaim:
    """The claim under that name, with its result written into it."""
    metadata = msgspec.structs.replace(claim.metadata, name=name)
    status = msgspec.structs.replace(claim.status, allocation=result)
    return msgspec.structs.replace(claim, metadata=metadata, status=status)


@EXAMPLES
@given(clusters(), st.lists(wishes(), min_size=1, max_size=4))
def test_the_judge_accepts_what_is_granted_one_after_another(
    slices: list[ResourceSlice], claims: Sequence[ResourceClaim]
) -> None:
    snapshot = a_snapshot(*slices)
    held: list[ResourceClaim] = []

    for number, claim in enumerate(claims):
        answer = ask_for(snapshot, claim)
        if isinstance(answer, Allocated):
            assert violations(snapshot, NODE, [claim], answer.results) == []
            held.append(as_held(claim, answer.results[0], f"claim-{number}"))
            snapshot = snapshot.with_claim(held[-1])

    anew = a_snapshot(*slices, held=held)
    assert anew.node(NODE).key is snapshot.node(NODE).key
    assert all(ask_for(anew, claim) == ask_for(snapshot, claim) for claim in claims)


@EXAMPLES
@given(clusters(), st.lists(wishes(), min_size=2, max_size=3))
def test_claims_that_fit_together_fit_one_after_another(
    slices: list[ResourceSlice], claims: Sequence[ResourceClaim]
) -> None:
    named = [as_held(claim, AllocationResult(), f"claim-{number}") for number, claim in enumerate(claims)]
    answer = ask_for(a_snapshot(*slices), *named)

    if isinstance(answer, Allocated):
        assert violations(a_snapshot(*slices), NODE, named, answer.results) == []
    assert isinstance(answer, Allocated | Refused | Failed)


@EXAMPLES
@given(clusters(), wishes(constrained=False))
def test_one_more_free_device_never_turns_a_counted_yes_into_no(
    slices: list[ResourceSlice], claim: ResourceClaim
) -> None:
    more = a_slice([a_device("extra", attributes={"model": "a", "root": 0})], name="a", pool="pool-0")

    before = ask_for(a_snapshot(*slices), claim)
    after = ask_for(a_snapshot(*slices, more), claim)

    assert isinstance(after, Allocated) or not isinstance(before, Allocated)


def exhaustive(snapshot: Snapshot, wanted: int) -> bool:
    """Whether so many devices can be had at once, by trying every set of devices of the only pool."""
    (pool,) = snapshot.node(NODE).pools
    found = list(pool.devices())
    for chosen in range(1 << len(found)):
        picked = [each for number, each in enumerate(found) if chosen >> number & 1]
        left = dict(pool.counter_totals)
        for key, amount in (draw for each in picked for draw in each.shape.draws):
            left[key] -= amount
        if len(picked) == wanted and all(amount >= 0 for amount in left.values()):
            return True
    return False


@EXAMPLES
@given(clusters(), st.integers(1, 7))
def test_a_count_fits_where_any_set_of_so_many_devices_does(slices: list[ResourceSlice], count: int) -> None:
    snapshot = a_snapshot(*slices)

    assert isinstance(ask_for(snapshot, a_claim(a_request("r", count=count))), Allocated) is exhaustive(snapshot, count)
