"""Which MIG placements exclude each other, and in which order they are published."""

from __future__ import annotations

import pytest

from dra.mig.placement import PlacedProfile, best_first, device_name_form, exclude, overlap
from dra.mig.profiles import MODELS, MigModel
from dra.names import is_dns_label


def placed(profile: str, start: int, size: int, compute: int = 1, most: int = 7) -> PlacedProfile:
    return PlacedProfile(profile=profile, start=start, size=size, compute_slices=compute, max_instances=most)


def choices(model: MigModel) -> list[PlacedProfile]:
    return [
        placed(p.name, start, p.memory_slices, p.compute_slices, p.max_instances)
        for p in model.profiles
        for start in p.starts
    ]


def model(name: str) -> MigModel:
    return next(each for each in MODELS if each.name == name)


@pytest.mark.parametrize(
    ("profile", "form"),
    [
        ("3g.40gb", "3g40gb"),
        ("1g.10gb+me", "1g10gbme"),
        ("1g.24gb+me.all", "1g24gbmeall"),
        ("1g.24gb-me", "1g24gb-me"),
        ("7g.141gb", "7g141gb"),
    ],
)
def test_device_name_form(profile: str, form: str) -> None:
    assert device_name_form(profile) == form
    assert is_dns_label(f"gpu-0-mig-{form}-0")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (placed("2g", 0, 2), placed("2g", 2, 2), False),
        (placed("2g", 0, 2), placed("1g", 1, 1), True),
        (placed("3g", 4, 4), placed("1g", 6, 1), True),
        (placed("3g", 4, 4), placed("4g", 0, 4), False),
    ],
)
def test_overlap_is_a_common_memory_slice(one: PlacedProfile, other: PlacedProfile, *, expected: bool) -> None:
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


def test_media_extensions_exist_once_per_card() -> None:
    assert exclude(placed("1g+me", 0, 1, most=1), placed("1g+me", 5, 1, most=1), compute_slices=7)
    assert not exclude(placed("1g", 0, 1), placed("1g", 5, 1), compute_slices=7)


def test_compute_slices_run_out_before_memory() -> None:
    assert exclude(placed("4g", 0, 4, compute=4), placed("4g", 4, 4, compute=4), compute_slices=7)


def test_h100_order() -> None:
    order = [(c.profile, c.start) for c in best_first(choices(model("H100-80GB")))]
    assert order == [
        *[("1g.10gb", start) for start in (6, 5, 4, 3, 2, 1, 0)],
        *[("1g.10gb+me", start) for start in (6, 5, 4, 3, 2, 1, 0)],
        *[("1g.20gb", start) for start in (6, 4, 2, 0)],
        *[("2g.20gb", start) for start in (4, 2, 0)],
        ("3g.40gb", 4),
        ("3g.40gb", 0),
        ("4g.40gb", 0),
        ("7g.80gb", 0),
    ]


def test_a30_order() -> None:
    order = [(c.profile, c.start) for c in best_first(choices(model("A30-24GB")))]
    assert order == [
        *[("1g.6gb", start) for start in (3, 2, 1, 0)],
        *[("1g.6gb+me", start) for start in (3, 2, 1, 0)],
        *[("2g.12gb", start) for start in (2, 0)],
        *[("2g.12gb+me", start) for start in (2, 0)],
        ("4g.24gb", 0),
    ]


@pytest.mark.parametrize("each", MODELS, ids=lambda each: each.name)
def test_order_does_not_depend_on_the_order_given(each: MigModel) -> None:
    given = choices(each)
    assert best_first(given) == best_first(reversed(given))
    assert sorted(best_first(given), key=repr) == sorted(given, key=repr)
