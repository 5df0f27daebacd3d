"""What the devices of each driver can be asked for, from what they publish."""

from __future__ import annotations

import pytest

from gpuinventory.gpuclasses import Offer, Part, derive, offer_of
from tests.gpuinventory.gpuclasses.drivers import (
    AMD,
    EXAMPLE,
    HAMI,
    INTEL,
    NVIDIA,
    OURS,
    UNKNOWN,
    device_class,
    fleet_of,
    of_driver,
)

GIB, MIB = 2**30, 2**20


def offered(driver: str, cards: int = 0) -> Offer:
    """What a class of everything of that driver offers."""
    drivers = () if driver == OURS else (driver,)
    snapshot = fleet_of(*drivers, classes=[device_class("it", of_driver(driver))], cards=cards)
    found = offer_of(derive(snapshot, ())[0].taken)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("driver", "sizes", "parts"),
    [
        (NVIDIA, (4864 * MIB, 40 * GIB), (Part("1g.5gb", 4864 * MIB),)),
        (AMD, (196592 * MIB,), ()),
        (INTEL, (14248 * MIB, 24480 * MIB), ()),
        (EXAMPLE, (80 * GIB,), ()),
        (UNKNOWN, (), ()),
    ],
)
def test_whole_devices_and_slices_with_their_memory(
    driver: str, sizes: tuple[int, ...], parts: tuple[Part, ...]
) -> None:
    found = offered(driver)

    assert (found.drivers, found.wholes, found.sizes, found.parts) == ((driver,), True, sizes, parts)
    assert found.share is None
    assert found.slots is None


def test_our_cards_give_shares_that_consume_no_memory_unless_asked() -> None:
    share = offered(OURS, cards=1).share

    assert share is not None
    assert share.name == "sharePercent"
    assert not share.takes_all_memory
    assert share.sizes[-1] == 81559 * MIB


def test_profiles_of_an_h100_from_the_smallest_with_what_they_really_have() -> None:
    """NVIDIA, MIG User Guide and `nvidia-smi mig -lgip` of an H100 80GB: 1g.10gb has 9984 MiB."""
    parts = offered(OURS, cards=1).parts

    assert [each.profile for each in parts] == ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb",
                                                "7g.80gb"]  # fmt: skip
    assert parts[0].memory < 10 * GIB


def test_hami_counts_cores_and_a_share_without_memory_takes_it_all() -> None:
    share = offered(HAMI).share

    assert share is not None
    assert share.name == "cores"
    assert share.takes_all_memory
    assert share.sizes == (80 * GIB,)


def test_no_devices_no_offer() -> None:
    assert offer_of(()) is None
