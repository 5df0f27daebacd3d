"""`python -m simulator.node`: the production node side on a machine that it makes when there is none."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.silicon.state import State
from simulator.silicon.tree import Tree
from tests.simulator.mps import CHECKOUT, PATIENCE_SECONDS, await_true

pytestmark = pytest.mark.programs


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because Unix sockets lie below it."""
    with tempfile.TemporaryDirectory(prefix="node-") as name:
        yield Path(name)


def node(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "simulator.node", "--root", folder / "silicon", *arguments]
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(CHECKOUT)}, stderr=subprocess.PIPE, text=True)


def test_the_mps_supervisor_runs_on_a_machine_that_is_made_for_it(folder: Path) -> None:
    supervisor = node(folder, "--scenario", "h200x8", "mpsd", "--node-name", "n1", "--kubelet-dir", folder)
    socket = folder / "plugins/gpu.portico.dev/mps/mpsd.sock"
    await_true(lambda: socket.exists() or supervisor.poll() is not None, "the supervisor's start")
    assert supervisor.poll() is None, supervisor.communicate()[1]
    supervisor.terminate()
    supervisor.communicate(timeout=PATIENCE_SECONDS)
    assert supervisor.returncode == 0
    gpus = State(Tree(folder / "silicon").state).read().gpus
    assert [gpu.product for gpu in gpus] == ["NVIDIA H200"] * 8


def test_an_existing_machine_is_left_as_it_is(folder: Path) -> None:
    for scenario in ("mixed", "h100x8"):
        node(folder, "--scenario", scenario, "mpsd", "--log-level", "odd").communicate(timeout=PATIENCE_SECONDS)
    assert len(State(Tree(folder / "silicon").state).read().gpus) == 6


def test_the_drivers_own_refusals_come_through(folder: Path) -> None:
    refused = node(folder, "driver", "--driver-name", "NOT A NAME", "--node-name", "n1")
    _, said = refused.communicate(timeout=PATIENCE_SECONDS)
    assert refused.returncode == 2
    assert "NOT A NAME" in said
