"""A stand-in machine per test, seen through the real pynvml."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from simulator.silicon import nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.state import State
from tests.simulator.machines import Machine


@pytest.fixture
def machine_of(tmp_path: Path) -> Iterator[Callable[[str], Machine]]:
    """Make a machine of a scenario and initialise NVML on it."""
    made = []

    def make(scenario: str) -> Machine:
        tree = initialise(tmp_path / "machine", scenario)
        nvml.install(tree.state)
        pynvml.nvmlInit()
        made.append(tree)
        return Machine(tree, State(tree.state))

    yield make
    for _ in made:
        pynvml.nvmlShutdown()


@pytest.fixture
def machine(machine_of: Callable[[str], Machine]) -> Machine:
    """Eight H100."""
    return machine_of("h100x8")


@pytest.fixture
def ampere(machine_of: Callable[[str], Machine]) -> Machine:
    """Eight A100."""
    return machine_of("a100x8")
