"""What is kept of cards over restarts, and who stands in the way of a reset, on folders made for it."""

import os
from pathlib import Path

import pytest

from nodedriver.cardmodes import CardMode
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.locks import Locks
from nodedriver.maintenance.deciding import Kept, Phase
from nodedriver.maintenance.holders import holders
from nodedriver.maintenance.ledger import Ledger

GPU, OTHER = PciAddress("0000:07:00.0"), PciAddress("0000:0f:00.0")
PART = MigPlacement(9, 4, 4)
WORKING = Kept(gpu=GPU, target=CardMode.MIG, since="2026-01-01T00:00:00Z")
FAILED = Kept(gpu=GPU, target=CardMode.MIG, since="2026-01-01T00:00:00Z", phase=Phase.FAILED, why="no")


def ledger(folder: Path, boot_id: str = "this boot") -> Ledger:
    return Ledger("gpu.portico.dev", folder / "maintenance.json", boot_id, Locks(folder, deadline=1))


def values(found: Ledger, placement: MigPlacement | None, gpu: PciAddress = GPU) -> list[str | None]:
    return [taint.value for taint in found.taints(gpu, placement)]


def test_what_is_kept_outlives_the_process_and_not_the_boot(tmp_path: Path) -> None:
    ledger(tmp_path).keep(GPU, FAILED)
    ledger(tmp_path).mark(OTHER)
    assert ledger(tmp_path).cards() == {GPU: FAILED}
    assert ledger(tmp_path).stubborn() == {OTHER}
    assert ledger(tmp_path, "next boot").cards() == {}
    assert ledger(tmp_path, "next boot").stubborn() == frozenset()


def test_cards_are_forgotten_one_by_one(tmp_path: Path) -> None:
    found = ledger(tmp_path)
    for gpu in (GPU, OTHER):
        found.keep(gpu, WORKING)
        found.mark(gpu)
    found.keep(GPU, None)
    found.unmark(GPU)
    assert list(found.cards()) == [OTHER]
    assert found.stubborn() == {OTHER}


def test_who_asked_for_it_is_told_of_a_marked_card(tmp_path: Path) -> None:
    found, told = ledger(tmp_path), list[frozenset[PciAddress]]()
    found.tell(lambda: told.append(found.stubborn()))
    found.mark(GPU)
    assert told == [{GPU}]


@pytest.mark.parametrize("content", [b"", b"{broken", b'{"boot_id": 7}'])
def test_a_broken_file_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "maintenance.json").write_bytes(content)
    assert ledger(tmp_path).cards() == {}
    ledger(tmp_path).keep(GPU, WORKING)
    assert ledger(tmp_path).cards() == {GPU: WORKING}


def test_a_card_that_is_worked_on_takes_nothing_and_one_that_failed_what_its_mode_serves(tmp_path: Path) -> None:
    found = ledger(tmp_path)
    found.keep(GPU, WORKING)
    assert (values(found, None), values(found, PART)) == (["reset-pending"], ["reset-pending"])
    found.keep(GPU, FAILED)
    assert (values(found, None), values(found, PART)) == ([], ["reset-failed"])
    assert values(found, PART, OTHER) == []


def process(proc: Path, pid: int, name: str, *opened: str) -> None:
    """A process of that id and name that has these files open."""
    (proc / str(pid) / "fd").mkdir(parents=True)
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    for number, path in enumerate(opened):
        (proc / str(pid) / "fd" / str(number)).symlink_to(path)


def test_who_has_the_node_of_a_card_open_holds_it(tmp_path: Path) -> None:
    process(tmp_path, 30, "dcgm-exporter", "/dev/null", "/dev/nvidia1")
    process(tmp_path, 20, "nv-hostengine", "/dev/nvidiactl", "/dev/nvidia1", "/dev/nvidia11")
    process(tmp_path, 40, "bystander", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia11", "/data/dev/nvidia1.log")
    (tmp_path / "self").mkdir()
    assert holders(tmp_path, 1, ()) == ("process 20 (nv-hostengine)", "process 30 (dcgm-exporter)")


def test_who_computes_holds_it_too_and_who_a_reset_works_beside_does_not(tmp_path: Path) -> None:
    process(tmp_path, 20, "nvidia-persiste", "/dev/nvidia0")
    process(tmp_path, 30, "nv-fabricmanage", "/dev/nvidia0")
    process(tmp_path, os.getpid(), "portico-node", "/dev/nvidia0")
    assert holders(tmp_path, 0, ()) == ()
    assert holders(tmp_path, 0, (40,)) == ("process 40 (unknown)",)
