"""`scripts/side-by-side`, by which `make test` runs two parts of the suite at once: what it answers, and its end."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cluster.waiting import wait_until

SCRIPT = str(Path(__file__).parents[2] / "scripts/side-by-side")


@pytest.mark.parametrize(("first", "second", "status"), [(0, 0, 0), (3, 0, 1), (0, 3, 1), (2, 3, 1)])
def test_it_fails_where_one_of_them_does(first: int, second: int, status: int) -> None:
    command = [SCRIPT, f"sleep 0.2; echo first; exit {first}", f"echo second; echo error >&2; exit {second}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (status, "first\nsecond\nerror\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_it_ends_both(tmp_path: Path, number: signal.Signals) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    pids = [f"echo $$ > {each}; exec sleep 2147483647" for each in (first, second)]
    with subprocess.Popen([SCRIPT, *pids], start_new_session=True, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: all(each.exists() and each.read_text().strip() for each in (first, second)), "both")
        os.killpg(process.pid, number)
        assert process.wait(30) != 0
    stats = [Path("/proc", each.read_text().strip(), "stat") for each in (first, second)]
    wait_until(lambda: not any(each.exists() for each in stats), "the end of both")
