"""Placements that old drivers tell in MIG mode only: learnt once, on a card that nobody holds, and kept in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodedriver.facts import MigModeChange, PciAddress
from nodedriver.locks import Locks
from nodedriver.nvml import Nvml
from nodedriver.placements import Placements
from simulator.silicon import nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import Gpu, Silicon
from simulator.silicon.state import State
from simulator.silicon.tree import Tree
from tests.nodedriver import apiserver
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import short_folder
from tests.nodedriver.node import SLICES, DriverNode

A = "aaaaaaaa-0000-4000-8000-000000000000"
FREE: frozenset[PciAddress] = frozenset()


def change(tree: Tree, step: Callable[[Gpu], Gpu], *, cards: int = 8) -> None:
    """Make the first cards another hardware."""

    def changed(silicon: Silicon) -> tuple[Silicon, None]:
        gpus = tuple(step(gpu) if number < cards else gpu for number, gpu in enumerate(silicon.gpus))
        return replace(silicon, gpus=gpus), None

    State(tree.state).change(changed)


def old_driver(gpu: Gpu) -> Gpu:
    return replace(gpu, profiles_need_mig_mode=True)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = initialise(tmp_path / "machine")
    change(made, old_driver)
    nvml.install(made.state)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mig-placements-cache.json"


class Noted(Nvml):
    """NVML, and which cards were asked to enter MIG mode."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.entered: list[PciAddress] = []

    def enter_mig(self, gpu: PciAddress) -> None:
        self.entered.append(gpu)
        super().enter_mig(gpu)


@contextmanager
def opened(tree: Tree, path: Path) -> Iterator[tuple[Noted, Placements]]:
    placements = Placements(path)
    gpus = Noted(library=None, sys_root=tree.sys, fill=placements.fill)
    try:
        yield gpus, placements
    finally:
        gpus.close()


def counts(gpus: Nvml) -> list[int]:
    """How many placements each card has."""
    return [sum(len(profile.placements) for profile in card.profiles) for card in gpus.facts()]


def modes(tree: Tree) -> set[bool]:
    return {gpu.mig_current for gpu in State(tree.state).read().gpus}


def test_one_free_card_tells_for_all_of_its_model(tree: Tree, path: Path, tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(tree, path) as (gpus, placements):
        before = gpus.facts()
        assert {card.mig_mode_change for card in before} == {MigModeChange.WHEN_IDLE}
        assert counts(gpus) == [0] * 8
        assert placements.learn(gpus, before, FREE, locks.gpus)
        assert counts(gpus) == [25] * 8
    assert modes(tree) == {False}
    (model,) = json.loads(path.read_bytes())["models"]
    assert (model["product"], model["driver_version"]) == ("NVIDIA H100 80GB HBM3", "580.126.20")


def test_a_later_start_asks_no_card(tree: Tree, path: Path, tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(tree, path) as (gpus, placements):
        placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
    written = path.stat().st_mtime_ns
    with opened(tree, path) as (gpus, placements):
        assert counts(gpus) == [25] * 8
        assert not placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
    assert path.stat().st_mtime_ns == written


def test_a_card_that_is_held_is_never_asked(tree: Tree, path: Path, tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(tree, path) as (gpus, placements):
        facts = gpus.facts()
        held = {card.pci_address for card in facts}
        assert not placements.learn(gpus, facts, held, locks.gpus)
        assert counts(gpus) == [0] * 8
        assert placements.learn(gpus, facts, held - {facts[5].pci_address}, locks.gpus)
        assert gpus.entered == [facts[5].pci_address]


def test_a_driver_of_another_version_is_asked_anew(tree: Tree, path: Path, tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(tree, path) as (gpus, placements):
        placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
    State(tree.state).change(lambda silicon: (replace(silicon, driver_version="590.10"), None))
    with opened(tree, path) as (gpus, placements):
        assert counts(gpus) == [0] * 8
        assert placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
    assert [model["driver_version"] for model in json.loads(path.read_bytes())["models"]] == ["590.10"]


def test_a_card_that_needs_a_reset_is_not_asked(tmp_path: Path, path: Path) -> None:
    made = initialise(tmp_path / "ampere", "a100x8")
    change(made, old_driver)
    nvml.install(made.state)
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(made, path) as (gpus, placements):
        assert {card.mig_mode_change for card in gpus.facts()} == {MigModeChange.NEEDS_RESET}
        assert not placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
    assert (modes(made), path.exists()) == ({False}, False)


def test_a_driver_that_tells_is_not_asked(tmp_path: Path, path: Path) -> None:
    made = initialise(tmp_path / "new")
    nvml.install(made.state)
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(made, path) as (gpus, placements):
        assert not placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
        assert counts(gpus) == [25] * 8
    assert not path.exists()


BROKEN = {
    "truncated": b'{"version": 1, "models": [{"pro',
    "not JSON": b"\x00\xff",
    "from the future": b'{"version": 2, "models": []}',
    "of another shape": b'{"version": 1, "models": [{"product": 1}]}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_file_that_can_not_be_read_is_set_aside_and_all_is_learnt_anew(
    tree: Tree, path: Path, tmp_path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(tree, path) as (gpus, placements):
        assert placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
        assert counts(gpus) == [25] * 8
    (aside,) = path.parent.glob("mig-placements-cache.json.unreadable-*")
    assert aside.read_bytes() == content


def test_a_field_that_this_version_does_not_know_is_ignored(tree: Tree, path: Path, tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks", deadline=10)
    with opened(tree, path) as (gpus, placements):
        placements.learn(gpus, gpus.facts(), FREE, locks.gpus)
    document: dict[str, Any] = json.loads(path.read_bytes())
    path.write_text(json.dumps(document | {"colour": "green"}))
    with opened(tree, path) as (gpus, _):
        assert counts(gpus) == [25] * 8


@pytest.mark.programs
def test_a_driver_process_learns_before_it_publishes_and_serves_what_it_learnt() -> None:
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        node = DriverNode(folder, store)
        change(node.tree, old_driver)
        try:
            node.start("mpsd")
            node.start("driver")
            assert sum(len(each["spec"].get("devices", [])) for each in store.under(SLICES)) == 216
            claim = node.allocate(allocated(given("gpu-0-mig-3g40gb-4", 100), uid=A))
            assert [answer.error for answer in node.prepare(claim).values()] == [""]
        finally:
            node.close()
