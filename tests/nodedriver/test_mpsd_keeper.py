"""What the supervisor does when a daemon, its server or a client fails, with real processes; and how it says so."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra.names import ClaimUID
from nodedriver.marks import mark
from nodedriver.mpsd.backoff import Backoff
from nodedriver.mpsd.board import Board
from nodedriver.mpsd.classic import ClassicControl
from nodedriver.mpsd.control import Doors, find_control_program
from nodedriver.ports import MpsDaemonSpec, MpsReport, MpsReports, MpsState
from tests.nodedriver.machine import short_folder
from tests.nodedriver.mps import GIB, QUARTER, A, B, MpsBench, enforced, eventually, put_in_place, quarter

by_both_protocols = pytest.mark.parametrize("bench", [2, 3], indirect=True)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[MpsBench]:
    with short_folder() as folder:
        made = MpsBench(folder, getattr(request, "param", 2))
        made.start()
        yield made
        made.stop()


def marked(uid: ClaimUID) -> dict[str, str]:
    """The environment of a process of that claim."""
    name, value = mark(uid).split("=")
    return {name: value}


def states_after(bench: MpsBench, known: MpsReports) -> list[MpsReport]:
    """The next change after what is known; none within half a minute is a failure."""
    found = bench.client.watch(known.revision, 30)
    assert found.revision != known.revision
    return list(found.daemons)


def await_state(bench: MpsBench, state: MpsState) -> MpsReport:
    """Follow the reports of the one daemon until it is in that state."""
    known = bench.client.watch(0, 30)
    while [each.state for each in known.daemons] != [state]:
        found = bench.client.watch(known.revision, 30)
        assert found.revision != known.revision, f"it stays {known.daemons}"
        known = found
    return known.daemons[0]


@pytest.mark.programs
class TestDaemons:
    @by_both_protocols
    def test_reports_follow_what_is_asked_for(self, bench: MpsBench) -> None:
        nothing = bench.client.watch(0, 30)
        assert nothing.daemons == ()
        assert bench.client.watch(nothing.revision, 0.05) == nothing
        bench.client.ensure(quarter(bench.device))
        assert states_after(bench, nothing) == [MpsReport(device=bench.device, protocol=bench.protocol)]
        known = bench.client.watch(0, 30)
        bench.client.remove(bench.device)
        assert states_after(bench, known) == []

    @by_both_protocols
    def test_a_server_that_dies_is_replaced_with_its_limits_before_a_client_comes(self, bench: MpsBench) -> None:
        bench.client.ensure(quarter(bench.device))
        (before,) = bench.daemons()
        known = bench.client.watch(0, 30)
        os.kill(before.servers[0].pid, signal.SIGKILL)
        (report,) = states_after(bench, known)
        assert (report.state, report.reason) == (MpsState.DOWN, "its server ended")
        await_state(bench, MpsState.READY)
        (after,) = bench.daemons()
        assert after.pid == before.pid
        assert after.servers[0].pid != before.servers[0].pid
        assert enforced(after) == (25.0, 20 * GIB)

    @by_both_protocols
    def test_a_daemon_that_can_not_be_started_again_says_why_until_it_can(self, bench: MpsBench) -> None:
        bench.client.ensure(quarter(bench.device))
        program = bench.tree.driver / "usr/bin/nvidia-cuda-mps-control"
        content = program.read_text()
        put_in_place(program, "#!/bin/sh\necho no such luck\nexit 3\n")
        os.kill(bench.daemons()[0].pid, signal.SIGKILL)
        reason = f"the MPS daemon of {bench.device} ended at once: "
        eventually(lambda: bench.client.watch(0, 30).daemons[0].reason.startswith(reason), "the reason")
        assert "no such luck" in bench.client.watch(0, 30).daemons[0].reason
        assert bench.client.list() == ()
        put_in_place(program, content)
        await_state(bench, MpsState.READY)
        assert enforced(bench.daemons()[0]) == (25.0, 20 * GIB)

    def test_a_daemon_whose_record_can_not_be_written_is_started_once_it_can(self, bench: MpsBench) -> None:
        bench.client.ensure(quarter(bench.device))
        (record,) = bench.mps_dir.glob("*/daemon.json")
        record.unlink()
        record.mkdir()
        os.kill(bench.daemons()[0].pid, signal.SIGKILL)
        eventually(lambda: "directory" in bench.client.watch(0, 30).daemons[0].reason, "the reason")
        record.rmdir()
        await_state(bench, MpsState.READY)
        assert enforced(bench.daemons()[0]) == (25.0, 20 * GIB)

    @by_both_protocols
    def test_a_server_at_fault_is_reported_and_its_recovery_too(self, bench: MpsBench) -> None:
        pipe = bench.client.ensure(quarter(bench.device)).pipe_of(QUARTER.name)
        with bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=pipe):
            bench.state.fail_mps_servers(bench.device)
            assert "fatal fault" in await_state(bench, MpsState.FAULT).reason
            assert len(bench.client.list()) == 1
        await_state(bench, MpsState.READY)

    @by_both_protocols
    def test_who_asks_for_what_is_so_does_not_wait_for_a_look(self, bench: MpsBench, tmp_path: Path) -> None:
        first = bench.client.ensure(quarter(bench.device))
        program = bench.tree.driver / "usr/bin/nvidia-cuda-mps-control"
        content = program.read_text()
        looks, end = tmp_path / "looks", tmp_path / "end"
        put_in_place(program, f"#!/bin/sh\n> {looks}\nwhile ! [ -e {end} ]; do sleep 0.1; done\nexit 3\n")
        look = threading.Thread(target=bench.client.list)
        look.start()
        eventually(looks.exists, "the look")
        assert bench.client.ensure(quarter(bench.device)) == first
        assert look.is_alive()
        end.touch()
        look.join()
        put_in_place(program, content)

    def test_limits_that_somebody_changed_are_set_again(self, bench: MpsBench) -> None:
        pipe = bench.client.ensure(quarter(bench.device)).pipe_directory
        known = bench.client.watch(0, 30)
        control = ClassicControl(find_control_program(bench.tree.driver), Doors(Path(pipe), None), bench.device)
        control.apply(MpsDaemonSpec(device=bench.device))
        (report,) = states_after(bench, known)
        assert report.reason == "somebody else changed its limits"
        await_state(bench, MpsState.READY)
        (daemon,) = bench.daemons()
        assert daemon.default_memory_limits == daemon.servers[0].memory_limits == {bench.device: 20 * GIB}
        assert (daemon.default_active_thread_percentage, daemon.servers[0].active_thread_percentage) == (25.0, 25.0)

    def test_the_clients_of_a_claim_are_ended_and_those_of_others_live_on(self, bench: MpsBench) -> None:
        pipe = bench.client.ensure(quarter(bench.device)).pipe_directory
        with (
            bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=pipe, **marked(A)) as of_a,
            bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=pipe, **marked(B)) as of_b,
            bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=pipe) as of_nobody,
        ):
            bench.client.end_clients(bench.device, A)
            (status,) = bench.client.list()
            assert sorted(status.clients) == sorted([of_b["pid"], of_nobody["pid"]])
            assert of_a["pid"] not in status.clients
            bench.client.end_clients(bench.device, A)
        bench.client.end_clients(bench.other_device, A)


def test_a_board_wakes_who_waits_for_news() -> None:
    board = Board()
    known = board.watch(0, 0)
    waiting: list[MpsReports] = []
    thread = threading.Thread(target=lambda: waiting.append(board.watch(known.revision, 60)))
    thread.start()
    assert board.put(MpsReport(device="GPU-1"))
    thread.join(60)
    assert [each.device for each in waiting[0].daemons] == ["GPU-1"]
    assert not board.put(MpsReport(device="GPU-1"))
    assert board.watch(waiting[0].revision, 0) == waiting[0]
    board.drop("GPU-1")
    assert board.watch(waiting[0].revision, 0).daemons == ()


# Seconds between one end and the next, and the delay before the start after it.
ENDS = [(0, 0.0), (0.2, 1.0), (1.2, 2.0), (2.2, 4.0), (4.2, 8.0), (8.2, 16.0), (16.2, 30.0), (30.2, 30.0), (95.0, 0.0)]


def test_what_keeps_ending_is_started_at_growing_distances() -> None:
    backoff, now = Backoff(), 1000.0
    for after, delay in [*ENDS, *ENDS[1:]]:
        now += after
        assert backoff.delay(now) == delay
