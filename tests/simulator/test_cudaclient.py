"""The CUDA program for containers (Go) does what the one in Python does: same answers, same exit statuses."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster.build import programs
from tests.simulator.machines import Machine
from tests.simulator.mps import PATIENCE_SECONDS, Mps

NOWHERE = {"CUDA_MPS_PIPE_DIRECTORY": "/nonexistent"}


@pytest.fixture(scope="session")
def cudaclient() -> str:
    return str(programs("cudaclient") / "cudaclient")


@pytest.fixture
def mps(machine: Machine) -> Iterator[Mps]:
    with Mps(machine.tree, machine.gpu().uuid, "-M") as running:
        running.command("set_default_active_thread_percentage 25")
        running.command("set_default_device_pinned_mem_limit 0 20G")
        yield running


@pytest.mark.parametrize(
    ("size", "environment"),
    [
        ("20G", {}),
        ("21G", {}),
        ("2G", {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1G", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "10"}),
        ("1G", {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=lots"}),
        ("1G", {"CUDA_VISIBLE_DEVICES": "4"}),
    ],
    ids=["within", "beyond", "tightened", "nonsense", "another device"],
)
def test_through_mps_both_programs_get_the_same(
    mps: Mps, cudaclient: str, size: str, environment: dict[str, str]
) -> None:
    from_python = mps.client(size, **environment)
    from_go = mps.client(size, cudaclient, **environment)
    assert from_go == {key: value for key, value in from_python.items() if value is not None}


def test_a_held_context_lives_as_long_as_its_program(mps: Mps, machine: Machine, cudaclient: str) -> None:
    client = mps.holding_client("3G", cudaclient)
    (server,) = mps.daemon().servers
    assert mps.command(f"get_client_list {server.pid}") == str(client.pid)
    client.terminate()
    assert client.wait(PATIENCE_SECONDS) == 0
    second = mps.holding_client("3G", cudaclient)
    mps.process.kill()
    assert second.wait(PATIENCE_SECONDS) == 1
    mps.process.wait(PATIENCE_SECONDS)  # its sockets close a moment before it is dead
    assert machine.state.read().mps_daemons == ()


def test_without_a_card_in_dev_there_is_no_device(mps: Mps, cudaclient: str) -> None:
    answer = mps.client("1G", cudaclient, **NOWHERE)
    assert (answer["status"], answer["result"], answer["via"]) == (100, "CUDA_ERROR_NO_DEVICE", "direct")


@pytest.mark.parametrize("words", [(), ("alloc",), ("alloc", "1T"), ("free", "1G")])
def test_wrong_words_are_told_the_right_ones(cudaclient: str, words: tuple[str, ...]) -> None:
    done = subprocess.run([cudaclient, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout) == (64, "")
    assert "usage: cudaclient alloc" in done.stderr
