"""What `make demo` leaves where it is killed, that it needs no rights, and what there is to see from the beginning."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.waiting import wait_until
from tests.journeys.embedded import READY, ROOT, Demo, running

pytestmark = pytest.mark.programs  # starts the whole demo

CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
# As root: another user's view, in which what this Python and the checkout need of root's home can be read.
OPEN_HOME = """
set -e
aside=$1 home=$2 count=$3; shift 3
for number in $(seq "$count"); do
  mkdir -p "$aside/$number"; mount --bind "$1" "$aside/$number"; eval "place_$number=\\$1"; shift
done
mount -t tmpfs -o mode=755 none "$home"
for number in $(seq "$count"); do
  eval "place=\\$place_$number"; mkdir -p "$place"; mount --bind "$aside/$number" "$place"
done
exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
"""


def test_its_programs_end_where_it_is_killed(tmp_path: Path) -> None:
    with running(tmp_path / "demo.log", "--scenario", "mixed") as demo:
        programs = wait_until(demo.programs, "the demo's programs")
        assert len(programs) >= 5
        demo.process.send_signal(signal.SIGKILL)
        demo.process.wait(10)
        wait_until(lambda: not [each for each in programs if each.alive()], "all of them to end", 30)


@pytest.mark.parametrize(
    ("scenario", "waiting", "incomplete"), [("article", "sweep-1", []), ("mixed", "whole-node-1", ["h200-3"])]
)
def test_interesting_states_are_there_from_the_beginning(
    tmp_path: Path, scenario: str, waiting: str, incomplete: list[str]
) -> None:
    with running(tmp_path / "demo.log", "--scenario", scenario) as demo:
        wait_until(lambda: _message(demo, waiting), "the pod that waits", 20)
        assert "cannot allocate all claims" in _message(demo, waiting)
        wait_until(lambda: "cannot allocate all claims" in _message(demo, "too-large-1"), "the pod too large", 20)
        assert len(demo.call("GET", "/apis/resource.k8s.io/v1/devicetaintrules")["items"]) == 1
        slices = demo.call("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
        pools: dict[str, list[int]] = {}
        for each in slices:
            pool = each["spec"]["pool"]
            pools.setdefault(pool["name"], []).append(pool["resourceSliceCount"])
        assert [name for name, counts in pools.items() if len(counts) < counts[0]] == incomplete


def _message(demo: Demo, pod: str) -> str:
    """Why the pod is not scheduled; empty where it is, or is not there yet."""
    items: list[dict[str, Any]] = demo.call("GET", "/api/v1/namespaces/ml-team/pods")["items"]
    conditions = [
        condition
        for each in items
        if each["metadata"]["name"] == pod
        for condition in each["status"].get("conditions", ())
    ]
    return "".join(each["message"] for each in conditions if each.get("reason") == "Unschedulable")


def test_the_cluster_lives_alone_too(tmp_path: Path) -> None:
    with running(tmp_path / "demo.log", "--no-portal") as demo:
        assert demo.url == json.loads(demo.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        wait_until(lambda: _held(demo), "claims that hold devices", 60)
        assert len(demo.programs()) == 4  # driver and supervisor of two nodes
    assert demo.process.returncode == 0, demo.log.read_text()


@contextmanager
def as_nobody(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The demo as a user without any right, in a home of its own; as whoever runs this where that is not root."""
    home = folder / "home"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    command = [sys.executable, "-m", "simulator.demo"]
    if os.geteuid() == 0:
        places = [sys.base_prefix, str(ROOT)]
        given = [str(folder / "aside"), str(Path("~root").expanduser()), str(len(places)), *places]
        command = ["unshare", "--mount", "--propagation=private", "bash", "-c", OPEN_HOME, "bash", *given, *command]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)}
    with (folder / "demo.log").open("wb") as log:
        process = subprocess.Popen(command, cwd="/", env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_it_needs_no_root_and_starts_again(tmp_path: Path) -> None:
    for name in ("once", "again"):
        folder = tmp_path / name
        folder.mkdir()
        _live(folder)


def _live(folder: Path) -> None:
    log = folder / "demo.log"
    with as_nobody(folder) as process:
        wait_until(lambda: READY.search(log.read_text()) or process.poll() is not None, "its address", 120)
        demo = Demo(process, log)
        assert demo.url
        assert {_owner(each.pid) for each in demo.programs()} == {os.geteuid() or 65534}
        wait_until(lambda: _held(demo), "claims that hold devices", 60)
    assert process.returncode == 0, log.read_text()


def _owner(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def _held(demo: Demo) -> list[Any]:
    return [each for each in demo.call("GET", CLAIMS)["items"] if each.get("status", {}).get("allocation")]
