"""What a card may hold at once, and what still fits; the counters that the scheduler sees agree."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra.mig.counters import counter_set, draw
from dra.mig.placement import PlacedProfile, exclude
from dra.mig.profiles import MODELS, MigModel
from dra.mig.room import Room, can_still_host, card, contents, legal, placed, placements
from dra.quantity import parse_quantity

KNOWN = [model for model in MODELS if card(model) is not None]


def model(name: str) -> MigModel:
    return next(each for each in MODELS if each.name == name)


def at(card_model: MigModel, *places: str) -> tuple[PlacedProfile, ...]:
    """`3g.40gb:4` is that profile at memory slice 4."""
    split = (place.split(":") for place in places)
    return tuple(placed(card_model.profile(name), int(start)) for name, start in split)


@pytest.mark.parametrize(
    ("name", "places", "allowed"),
    [
        ("H100-80GB", ("7g.80gb:0",), True),
        ("H100-80GB", ("3g.40gb:0", "3g.40gb:4"), True),
        ("H100-80GB", ("4g.40gb:0", "3g.40gb:4"), True),
        ("H100-80GB", tuple(f"1g.10gb:{start}" for start in range(7)), True),
        ("H100-80GB", ("1g.20gb:0", "1g.20gb:2", "1g.20gb:4", "1g.20gb:6"), True),
        ("H100-80GB", ("3g.40gb:0", "2g.20gb:2"), False),  # a memory slice twice
        ("H100-80GB", ("3g.40gb:2",), False),  # no legal start
        ("H100-80GB", ("1g.10gb+me:0", "1g.10gb+me:1"), False),  # once a card
        ("H100-80GB", ("1g.10gb:0", "1g.10gb:0"), False),
        ("A30-24GB", ("2g.12gb:0", "2g.12gb:2"), True),
        ("A30-24GB", ("1g.6gb+me:3", "2g.12gb+me:0"), False),  # one JPEG engine
        ("A30-24GB", ("1g.6gb:3", "2g.12gb+me:0"), True),
    ],
)
def test_what_a_card_may_hold(name: str, places: tuple[str, ...], allowed: bool) -> None:  # noqa: FBT001  # a column
    assert legal(model(name), at(model(name), *places)) is allowed


def test_a_profile_of_another_model_is_no_placement() -> None:
    foreign = at(model("A30-24GB"), "1g.6gb:0")

    with pytest.raises(KeyError, match=r"1g\.6gb"):
        legal(model("H100-80GB"), foreign)


@pytest.mark.parametrize("each", MODELS, ids=lambda each: each.name)
def test_an_empty_card_has_room_for_as_many_as_nvidia_says_at_every_start(each: MigModel) -> None:
    rooms = can_still_host(each, ())

    assert {name: room.count for name, room in rooms.items()} == {p.name: p.max_instances for p in each.profiles}
    assert {name: sorted(room.starts) for name, room in rooms.items()} == {
        p.name: list(p.starts) for p in each.profiles
    }


def test_room_beside_a_3g_on_the_upper_half() -> None:
    h100 = model("H100-80GB")

    assert can_still_host(h100, at(h100, "3g.40gb:4")) == {
        "1g.10gb": Room(4, (3, 2, 1, 0)),
        "1g.10gb+me": Room(1, (3, 2, 1, 0)),
        "1g.20gb": Room(2, (2, 0)),
        "2g.20gb": Room(2, (2, 0)),
        "3g.40gb": Room(1, (0,)),
        "4g.40gb": Room(1, (0,)),
        "7g.80gb": Room(0, ()),
    }


def test_one_small_instance_in_the_wrong_place_costs_a_large_one() -> None:
    h100 = model("H100-80GB")
    high, low = (can_still_host(h100, at(h100, f"1g.10gb:{start}")) for start in (6, 0))

    assert (high["4g.40gb"].count, low["4g.40gb"].count) == (1, 0)
    assert (high["3g.40gb"].count, low["3g.40gb"].count) == (1, 1)


def test_only_profiles_of_one_card_with_media_extensions_need_more_than_the_pairwise_rule() -> None:
    differing = {
        (each.name, one.profile, other.profile)
        for each in MODELS
        for one, other in combinations(placements(each), 2)
        if legal(each, (one, other)) == exclude(one, other, compute_slices=each.compute_slices)
    }

    assert differing == {("A30-24GB", "1g.6gb+me", "2g.12gb+me")}  # both want the only JPEG and OFA engines


def counters_hold(card_model: MigModel, chosen: tuple[PlacedProfile, ...]) -> bool:
    whole = card(card_model)
    assert whole is not None
    left = {
        name: parse_quantity(counter.value)
        for name, counter in counter_set("card", whole, memory_slices=card_model.memory_slices).counters.items()
    }
    for choice in chosen:
        held = contents(card_model.profile(choice.profile))
        assert held is not None
        for name, counter in draw("card", held, choice.memory_slices).counters.items():
            left[name] -= parse_quantity(counter.value)
    return all(value.nano >= 0 for value in left.values())


@pytest.mark.parametrize("each", KNOWN, ids=lambda each: each.name)
def test_the_counters_exclude_exactly_the_pairs_that_a_card_can_not_hold(each: MigModel) -> None:
    pairs = list(combinations(placements(each), 2))

    assert [counters_hold(each, pair) for pair in pairs] == [legal(each, pair) for pair in pairs]


@settings(deadline=None)
@given(st.data())
def test_the_counters_agree_on_any_set_of_placements(data: st.DataObject) -> None:
    each = data.draw(st.sampled_from(KNOWN))
    chosen = tuple(data.draw(st.lists(st.sampled_from(placements(each)), max_size=7, unique=True)))

    assert counters_hold(each, chosen) == legal(each, chosen)


@settings(deadline=None)
@given(st.data())
def test_room_is_what_can_be_added_and_no_more(data: st.DataObject) -> None:
    each = data.draw(st.sampled_from(MODELS))
    wanted = data.draw(st.lists(st.sampled_from(placements(each)), max_size=6))
    held: tuple[PlacedProfile, ...] = ()
    for choice in wanted:
        held = (*held, choice) if legal(each, (*held, choice)) else held
    name, room = data.draw(st.sampled_from(sorted(can_still_host(each, held).items())))
    starts = each.profile(name).starts
    sets = (
        subset
        for size in range(len(starts) + 1)
        for subset in combinations(starts, size)
        if legal(each, (*held, *(placed(each.profile(name), start) for start in subset)))
    )

    assert room.count == max(map(len, sets))
    assert (room.count > 0) is bool(room.starts)
