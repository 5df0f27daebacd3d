"""Programs that end with the one that started them: told so, by themselves, or because it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.children import Child
from tests.cluster.processes import ProcessId
from tests.cluster.waiting import wait_until

pytestmark = pytest.mark.programs

SERVE = ["http.server", "0", "--bind", "127.0.0.1"]
PARENT = """
import os, sys, time, pathlib
from simulator.children import Child
child = Child("server", sys.argv[2:], pathlib.Path(sys.argv[1]), os.environ)
time.sleep(600)
"""


def children_of(pid: int) -> list[ProcessId]:
    pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for each in pids if (found := ProcessId.of(int(each)))]


def serves(log: Path) -> bool:
    return log.exists() and "Serving HTTP" in log.read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "log"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(log), *SERVE], env=environment)
    wait_until(lambda: serves(log), "the child to serve", 30)
    (child,) = children_of(parent.pid)
    parent.send_signal(number)
    parent.wait(10)
    wait_until(lambda: not child.alive(), "the child to end", 30)


def test_a_child_is_stopped_and_one_that_ended_tells_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = Child("server", SERVE, log, {**os.environ, "PYTHONUNBUFFERED": "1"})
    wait_until(lambda: serves(log), "the child to serve", 30)
    assert child.fault() == ""
    child.stop()
    assert child.fault().startswith("server ended with -15:\n")
    broken = Child("nothing", ["simulator.nothing"], tmp_path / "broken", os.environ)
    wait_until(broken.fault, "the child to fail", 30)
    assert broken.fault().startswith("nothing ended with 1:\n")
    assert broken.fault().endswith("No module named simulator.nothing")
    broken.stop()
