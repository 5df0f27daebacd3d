"""The numbers of cards: by PCI order at first, then theirs for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodedriver.facts import PciAddress
from nodedriver.ranks import RanksError, assign_ranks


def bus(number: int) -> PciAddress:
    return PciAddress(f"0000:{number:02x}:00.0")


def test_the_first_ranks_follow_pci_order(tmp_path: Path) -> None:
    assert assign_ranks(tmp_path / "ranks.json", [bus(9), bus(1), bus(5)]) == {bus(1): 0, bus(5): 1, bus(9): 2}


def test_a_card_keeps_its_rank_when_another_leaves_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "ranks.json"
    first = assign_ranks(path, [bus(1), bus(5), bus(9)])
    assert assign_ranks(path, [bus(5), bus(9)])[bus(9)] == first[bus(9)]
    assert assign_ranks(path, [bus(1), bus(5), bus(9)]) == first


def test_a_new_card_takes_no_number_that_was_given_out(tmp_path: Path) -> None:
    path = tmp_path / "ranks.json"
    assign_ranks(path, [bus(5), bus(9)])
    assert assign_ranks(path, [bus(1), bus(9)])[bus(1)] == 2


def test_a_broken_file_is_no_reason_to_guess(tmp_path: Path) -> None:
    path = tmp_path / "ranks.json"
    path.write_text("{half")
    with pytest.raises(RanksError, match=r"ranks\.json can't be read: .*Drain the node"):
        assign_ranks(path, [bus(1)])
    assert path.read_text() == "{half"


@given(st.lists(st.sets(st.integers(0, 40), max_size=16), max_size=8))
def test_no_two_cards_ever_share_a_rank(tmp_path_factory: pytest.TempPathFactory, history: list[set[int]]) -> None:
    path = tmp_path_factory.mktemp("ranks") / "ranks.json"
    ranks: dict[PciAddress, int] = {}
    for present in history:
        after = assign_ranks(path, map(bus, present))
        assert after.items() >= ranks.items()
        assert len(set(after.values())) == len(after)
        ranks = after
