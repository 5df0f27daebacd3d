"""The stand-in control daemon by protocol 3: named servers, namespaces, and clients that come in by their sockets."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulator.machines import Machine
from tests.simulator.mps import PATIENCE_SECONDS, Mps, await_true

pytestmark = pytest.mark.programs

GIB = 1024**3
CSV = "--format=csv,noheader"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """With a driver that offers protocol 3."""
    machine.state.change(lambda silicon: (replace(silicon, driver_version="615.43.04"), None))
    return machine


@pytest.fixture
def mps(machine: Machine) -> Iterator[Mps]:
    with Mps(machine.tree, machine.gpu().uuid, "-m", "-p", "3") as running:
        yield running


def say(mps: Mps, *words: str) -> str:
    """A command that must succeed; what the program prints."""
    done = mps.run_command("", *words)
    assert done.returncode == 0, done
    return done.stdout.strip()


def refused(mps: Mps, *words: str) -> str:
    done = mps.run_command("", *words)
    assert done.returncode == 1, done
    return done.stdout.strip()


def pipe(mps: Mps, *names: str) -> dict[str, str]:
    return {"CUDA_MPS_PIPE_DIRECTORY": str(mps.pipes.joinpath(*names))}


@pytest.fixture
def parted(mps: Mps) -> Mps:
    """Server `gpu` with namespace `small`: 25 %, 10 GiB."""
    say(mps, "server", "create", "gpu")
    say(mps, "namespace", "create", "small", "--server=gpu")
    say(mps, "namespace", "set", "small", "--server=gpu", "--pinned-memory-limit=10G", "--active-thread-percentage=25")
    return mps


def test_servers_and_namespaces_are_listed(parted: Mps) -> None:
    (server,) = parted.daemon().servers
    row = [
        "gpu",
        str(os.getuid()),
        str(server.pid),
        "Ready",
        str(parted.pipes / "gpu"),
        parted.daemon().devices[0],
        "-",
    ]
    assert say(parted, "server", "list", CSV).split(",") == row
    folder = parted.pipes / "gpu"
    assert say(parted, "namespace", "list", "--server=gpu", CSV).splitlines() == [
        f"default,gpu,Ready,-,-,-,{folder}/default",
        f"small,gpu,Ready,10G,25,-,{folder}/small",
    ]
    assert say(parted, "namespace", "list").startswith("NAME SERVER SERVER-STATUS PINNED-MEMORY-LIMIT")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("server", "create", "gpu"), "exists already"),
        (("server", "create", "GPU-1"), "is no name"),
        (("namespace", "create", "small", "--server=gpu"), "exists already"),
        (("namespace", "create", "small", "--server=other"), "no server 'other'"),
        (("namespace", "set", "large", "--server=gpu", "--pinned-memory-limit=1G"), "no namespace 'large'"),
        (("namespace", "set", "small", "--server=gpu", "--active-thread-percentage=0"), "must be above 0"),
        (("namespace", "delete", "default", "--server=gpu"), "can't be deleted"),
        (("make", "coffee"), "Unknown command 'make coffee'"),
    ],
)
def test_what_can_not_be_done_is_refused(parted: Mps, words: tuple[str, ...], reason: str) -> None:
    assert reason in refused(parted, *words)


def test_a_clients_way_in_decides_its_limits(parted: Mps) -> None:
    fits = parted.client("10G", **pipe(parted, "gpu", "small"))
    assert (fits["result"], fits["active_thread_percentage"]) == ("CUDA_SUCCESS", 25.0)
    assert parted.client("11G", **pipe(parted, "gpu", "small"))["result"] == "CUDA_ERROR_OUT_OF_MEMORY"
    for way in (("gpu",), ("gpu", "default"), ()):
        assert parted.client("11G", **pipe(parted, *way))["active_thread_percentage"] == 100.0


def test_a_clients_environment_tightens_its_memory_and_not_its_percentage(parted: Mps) -> None:
    """MPS documentation, "Environment Variables": a namespace's percentage overrides the client's."""
    asked = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "10", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1G"}
    tight = parted.client("1G", **pipe(parted, "gpu", "small"), **asked)
    assert (tight["active_thread_percentage"], tight["memory_limit_bytes"]) == (25.0, GIB)
    free = parted.client("1G", **pipe(parted, "gpu", "default"), **asked)
    assert free["active_thread_percentage"] == 10.0


def test_clients_are_listed_by_namespace_and_terminated(parted: Mps) -> None:
    client = parted.holding_client("1G", **pipe(parted, "gpu", "small"))
    assert say(parted, "client", "list", "--server=gpu", CSV) == f"{client.pid},gpu,0,small,a program"
    assert "active clients" in refused(parted, "namespace", "delete", "small", "--server=gpu")
    assert "active clients" in refused(parted, "server", "delete", "gpu")
    say(parted, "client", "terminate", str(client.pid))
    assert client.wait(PATIENCE_SECONDS) == 1
    say(parted, "namespace", "delete", "small", "--server=gpu")
    assert not (parted.pipes / "gpu" / "small").exists()


def test_by_force_a_namespace_goes_around_its_clients(parted: Mps) -> None:
    client = parted.holding_client("1G", **pipe(parted, "gpu", "small"))
    say(parted, "namespace", "delete", "small", "--server=gpu", "--force")
    assert client.poll() is None
    say(parted, "server", "delete", "gpu", "--force")
    assert say(parted, "server", "list", CSV) == ""


def test_a_server_that_dies_takes_its_namespaces_along(parted: Mps) -> None:
    os.kill(parted.daemon().servers[0].pid, signal.SIGKILL)
    await_true(lambda: not (parted.pipes / "gpu" / "small").exists(), "the end of its sockets")
    assert say(parted, "server", "list", CSV) == ""


def test_the_daemon_ends_when_told(parted: Mps) -> None:
    say(parted, "-q")
    assert parted.process.wait(PATIENCE_SECONDS) == 0
    assert not Path(parted.pipes / "gpu").exists()


def test_each_protocol_refuses_the_others_commands(parted: Mps) -> None:
    assert "protocol 3 as arguments" in parted.run_command("get_server_list").stdout
    with Mps(parted.tree, parted.daemon().devices[0], "-M") as classic:
        assert "line by line" in refused(classic, "server", "list")


@pytest.mark.parametrize(("version", "modules"), [("580.126.20", 0), ("615.43.04", 1)])
def test_help_tells_whether_it_is_offered(machine: Machine, version: str, modules: int) -> None:
    machine.state.change(lambda silicon: (replace(silicon, driver_version=version), None))
    program = machine.tree.driver / "usr/bin/nvidia-cuda-mps-control"
    done = subprocess.run([program, "-p", "3", "-h"], capture_output=True, text=True, check=True)
    assert done.stdout.count("namespace") == modules
