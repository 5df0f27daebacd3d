"""`make demo CLUSTER=real` as a person runs it: one command, one address, and Ctrl-C leaves nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cluster.node import Node
from tests.cluster.processes import ProcessId
from tests.cluster.waiting import wait_until

ROOT = Path(__file__).parents[2]
READY = re.compile(r"ready: (http://127\.0\.0\.1:\d+)")


@pytest.fixture
def log() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder) / "demo.log"


def descendants(pid: int) -> list[ProcessId]:
    """The demo's own programs, found by their parent."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for child in children if (found := ProcessId.of(int(child)))]


def test_one_command_prints_one_address_and_ctrl_c_stops_everything(node: Node, log: Path) -> None:
    """`node` says whether this machine can run one; the demo brings its own."""
    with log.open("wb") as output:
        demo = subprocess.Popen([sys.executable, "-m", "tests.cluster.demo"], cwd=ROOT, stdout=output, stderr=output)
    try:
        url = wait_until(lambda: READY.search(log.read_text()) or demo.poll(), "the address of the demo", 180)
        assert isinstance(url, re.Match), log.read_text()
        with urllib.request.urlopen(f"{url[1]}/readyz", timeout=10) as answer:
            assert answer.status == 200
        assert READY.findall(log.read_text()) == [url[1]]
        for name in ("alice", "bob", "charlie", "olga", "gus"):
            assert re.search(rf"^ *{name} +\S+$", log.read_text(), re.MULTILINE)
        programs = descendants(demo.pid)
        assert len(programs) >= 10  # four of the control plane, two of the node, two of the driver, three of the portal
        demo.send_signal(signal.SIGINT)
        assert demo.wait(180) == 0, log.read_text()
        assert [program for program in programs if program.alive()] == []
    finally:
        demo.kill()
        demo.wait(30)
