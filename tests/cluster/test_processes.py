"""Starting and stopping programs: logs in errors, records that outlive us, and never a signal to a stranger."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cluster.processes import Processes, ProcessId, ProgramError
from tests.cluster.waiting import wait_until


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


def test_stop_ends_a_program_and_its_record(processes: Processes) -> None:
    program = processes.start("sleeper", ["sleep", "600"])
    wait_until(program.record.exists, "the record")
    assert processes.recorded() == ["sleeper"]
    program.stop()
    assert program.process.returncode == -15
    assert processes.recorded() == []


def test_a_program_that_ignores_sigterm_is_killed(processes: Processes) -> None:
    program = processes.start("stubborn", ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done"])
    wait_until(lambda: program.log.read_text() == "deaf\n", "the trap")
    program.stop(grace=0.3)
    assert program.process.returncode == -9


def test_an_early_end_shows_the_tail_of_the_log(processes: Processes) -> None:
    program = processes.start("brief", ["sh", "-c", "seq 1 100; echo no such flag >&2; exit 4"])
    with pytest.raises(ProgramError) as caught:
        program.wait_ready(lambda: False, seconds=20)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"brief ended with 4 before it was ready; the end of {program.log}:"
    assert lines[1:] == [*(str(number) for number in range(77, 101)), "no such flag"]
    assert processes.recorded() == []


def test_a_late_program_is_named_with_its_log(processes: Processes) -> None:
    program = processes.start("late", ["sh", "-c", "echo thinking; exec sleep 600"])
    wait_until(lambda: program.log.read_text() != "", "the first line")
    with pytest.raises(ProgramError, match=r"late was not ready after 0 s; .*\nthinking$"):
        program.wait_ready(lambda: False, seconds=0.2)
    assert program.process.returncode == -15
    assert processes.recorded() == []


def test_the_record_alone_is_enough_to_stop_it(processes: Processes) -> None:
    program = processes.start("orphan", ["sleep", "600"])
    wait_until(program.record.exists, "the record")
    Processes(processes.folder).stop_recorded("orphan")
    assert program.process.wait(5) == -15
    assert processes.recorded() == []


def test_a_reused_pid_is_left_alone(processes: Processes) -> None:
    """The record names this pid with another start time: that was somebody else, who is gone."""
    with subprocess.Popen(["sleep", "600"]) as stranger:
        stat = Path(f"/proc/{stranger.pid}/stat").read_text()
        known = ProcessId.of(stranger.pid)
        assert known is not None
        processes.records.mkdir()
        record = processes.records / "gone.stat"
        record.write_text(stat.replace(f" {known.started} ", f" {known.started - 1} "))
        assert ProcessId.read(record) == ProcessId(stranger.pid, known.started - 1)

        processes.stop_recorded("gone")
        assert stranger.poll() is None
        assert processes.recorded() == []
        stranger.kill()


def test_a_name_with_brackets_and_spaces_does_not_mislead(processes: Processes, tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to("/bin/sleep")
    program = processes.start("odd", [odd, "600"])
    wait_until(lambda: Path(f"/proc/{program.pid}/comm").read_text() == "a) S 1 (b\n", "the program itself")
    assert ProcessId.of(program.pid) == ProcessId.read(program.record)
    program.stop()


def test_a_program_gets_a_session_of_its_own(processes: Processes) -> None:
    program = processes.start("session", ["sleep", "600"])
    assert os.getsid(program.pid) == program.pid
    program.stop()
