"""MPS daemons that are not ready: which devices ail, which claims are told, and the taints of a real driver."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from structlog.testing import capture_logs

from dra.names import ClaimUID
from nodedriver.facts import DeviceType, MigPlacement, PciAddress
from nodedriver.gpuconfig import MpsLimits
from nodedriver.health.ailments import Ailment, Ailments, CardLook, Cause, Policy
from nodedriver.health.monitor import Health
from nodedriver.health.report import Wellness, health_of
from nodedriver.health.xids import Severity
from nodedriver.holding import Checkpoint, ClaimState, PreparedClaim, PreparedDevice
from nodedriver.mpsd.board import Board
from nodedriver.mpswatch import MpsWatch, faults_of, untold_of
from nodedriver.ports import MpsError, MpsReport, MpsReports, MpsState
from tests.nodedriver.claims import DRIVER, allocated, given
from tests.nodedriver.machine import CLAIMS, short_folder, wait_until
from tests.nodedriver.mps import MpsBench, quarter
from tests.nodedriver.node import SLICES, DriverNode

CARD = PciAddress("0000:17:00.0")
AT_0, AT_4 = MigPlacement(9, 0, 4), MigPlacement(9, 4, 4)
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
QUARTER = MpsLimits(thread_percentage=25)
A, B = ClaimUID("aaaaaaaa-0000-4000-8000-000000000000"), ClaimUID("bbbbbbbb-0000-4000-8000-000000000000")


def claim(uid: ClaimUID, **fields: Any) -> PreparedClaim:
    device = replace(PreparedDevice(device_request="gpu", pool="node-1", device="d", gpu=CARD, mps=QUARTER), **fields)
    return PreparedClaim(namespace="t", name="n", uid=uid, state=ClaimState.COMPLETED, devices=(device,))


PART = claim(A, uuid="MIG-1", placement=AT_4, type=DeviceType.MIG)
SHARE = claim(B, uuid="GPU-1")
NAMELESS = claim(A, placement=AT_4, type=DeviceType.MIG)  # its instance is not made yet
DOWN = MpsReport(device="GPU-1", state=MpsState.DOWN, reason="the control daemon ended")
FAULT = MpsReport(device="MIG-1", state=MpsState.FAULT, reason="a client met a fatal fault")


def ailment(state: str, placement: MigPlacement | None = None, since: str = NOW) -> Ailment:
    return Ailment(gpu=CARD, cause=Cause.MPS, severity=Severity.DAEMON, since=since, placement=placement, state=state)


def test_a_daemon_that_is_not_ready_ails_its_silicon() -> None:
    assert faults_of([DOWN], [SHARE], NOW) == (ailment("down"),)
    assert faults_of([FAULT], [PART], NOW) == (ailment("fault", AT_4),)
    assert faults_of([MpsReport(device="GPU-1")], [SHARE], NOW) == ()
    assert faults_of([DOWN], [claim(A, uuid="GPU-1", mps=None), PART], NOW) == ()


def test_faults_come_and_go_with_the_reports_alone() -> None:
    healthy = Ailments(boot_id="b")
    ill = healthy.with_daemons([ailment("down"), ailment("fault", AT_4)])
    assert ill.with_daemons([ailment("down", since=LATER), ailment("fault", AT_4, LATER)]) is ill
    assert ill.with_daemons([ailment("fault", AT_4, LATER)]).found == (ailment("fault", AT_4),)
    assert ill.with_daemons([]) == healthy
    well = CardLook(answers=True, recovery=Severity.INFORMATION, placements=frozenset({AT_4}))
    assert ill.after_look(CARD, well, LATER) == ill
    without = replace(well, placements=frozenset({AT_0}))
    assert ill.after_look(CARD, without, LATER).found == (ailment("down"),)


def test_without_a_supervisor_all_that_claims_have_under_mps_ails() -> None:
    assert untold_of([PART, SHARE], NOW) == (ailment("supervisor-silent", AT_4), ailment("supervisor-silent"))
    assert untold_of([SHARE, SHARE], NOW) == (ailment("supervisor-silent"),)
    assert untold_of([NAMELESS], NOW) == (ailment("supervisor-silent", AT_4),)
    assert untold_of([claim(A, uuid="GPU-1", mps=None)], NOW) == ()


def test_the_kubelet_hears_of_it() -> None:
    untold = health_of("gpu-0", [ailment("supervisor-silent")])
    assert untold.wellness is Wellness.UNKNOWN
    assert health_of("gpu-0", [ailment("supervisor-silent"), ailment("down")]).wellness is Wellness.UNHEALTHY
    told = health_of("gpu-0", [ailment("down")])
    assert (told.wellness, told.message) == (
        Wellness.UNHEALTHY,
        "mps-fault (down) since 2026-01-01T00:00:00Z, asks for: daemon",
    )


def test_only_the_claims_of_daemons_that_changed_are_told(tmp_path: Path) -> None:
    board = Board()
    board.put(MpsReport(device="GPU-1"))
    board.put(MpsReport(device="MIG-1"))
    health = Health(DRIVER, Policy(), tmp_path / "health.json", "b")
    checkpoint = Checkpoint(boot_id="b", claims={A: PART, B: SHARE})
    told: list[list[ClaimUID]] = []
    published: list[bool] = []
    watch = MpsWatch(board.watch, lambda: checkpoint, health)
    watch.tell(lambda: published.append(True), lambda uids: told.append(list(uids)))
    assert watch.report("MIG-1") is None
    watch.look(1)
    watch.look(0)
    assert (told, published) == ([[A, B]], [])
    board.put(FAULT)
    watch.look(1)
    assert (told, published) == ([[A, B], [A]], [True])
    assert watch.report("MIG-1") == FAULT
    assert [taint.value for taint in health.taints(CARD, AT_4)] == ["fault"]
    assert health.taints(CARD, AT_0) == ()


def test_a_stop_waits_for_no_answer_and_nothing_is_told_of_one_that_comes_later(tmp_path: Path) -> None:
    asked, answer = threading.Event(), SimpleQueue[MpsReports]()
    told: list[ClaimUID] = []

    def ask(_revision: int, _seconds: float) -> MpsReports:
        asked.set()
        return answer.get(timeout=60)

    health = Health(DRIVER, Policy(), tmp_path / "health.json", "b")
    watch = MpsWatch(ask, lambda: Checkpoint(boot_id="b", claims={B: SHARE}), health)
    watch.tell(lambda: None, told.extend).start()
    assert asked.wait(60)
    watch.stop()
    answer.put(MpsReports(revision=1, daemons=(DOWN,)))
    wait_until(lambda: "mps-watch" not in {thread.name for thread in threading.enumerate()}, "the end of the thread")
    assert told == []
    assert health.taints(CARD, None) == ()


def test_a_daemons_protocol_is_asked_for_and_kept_while_nobody_tells_of_it(tmp_path: Path) -> None:
    answers = [MpsReports(revision=1, daemons=(MpsReport(device="GPU-1", protocol=3),))]

    def ask(_revision: int, _seconds: float) -> MpsReports:
        if answers:
            return answers.pop()
        raise MpsError("the MPS supervisor did not answer")

    watch = MpsWatch(ask, lambda: Checkpoint(boot_id="b"), Health(DRIVER, Policy(), tmp_path / "health.json", "b"))
    assert watch.protocol("GPU-1") == 3
    with pytest.raises(MpsError):
        watch.look(0)
    assert (watch.protocol("GPU-1"), watch.protocol("MIG-1")) == (3, 2)


@pytest.fixture
def bench() -> Iterator[MpsBench]:
    with short_folder() as folder:
        made = MpsBench(folder)
        yield made
        made.stop()


class Told:
    """A watch over a bench's supervisor, the claim of its one daemon, and how often a change was published."""

    def __init__(self, bench: MpsBench, folder: Path, silence: float, *claims: PreparedClaim) -> None:
        self.health = Health(DRIVER, Policy(), folder / "health.json", "b")
        self.published = 0
        checkpoint = Checkpoint(boot_id="b", claims={each.uid: each for each in claims})
        self.watch = MpsWatch(bench.client.watch, lambda: checkpoint, self.health, silence)
        self.watch.tell(self._publish, lambda _: None)

    def _publish(self) -> None:
        self.published += 1

    def taints(self) -> list[str]:
        return [taint.value for taint in self.health.taints(CARD, None)]

    def miss(self) -> None:
        """Ask a supervisor that is not there."""
        with pytest.raises(MpsError):
            self.watch.look(1)


@pytest.mark.programs
def test_a_supervisor_that_is_gone_is_told_once_and_until_it_answers_again(bench: MpsBench, tmp_path: Path) -> None:
    supervisor = bench.start()
    bench.client.ensure(quarter(bench.device))
    told = Told(bench, tmp_path, 0, claim(A, uuid=bench.device))
    told.watch.look(1)
    assert (told.taints(), told.published) == ([], 0)
    supervisor.kill()
    supervisor.wait(30)
    told.miss()
    told.miss()
    assert (told.taints(), told.published) == (["supervisor-silent"], 1)
    assert told.watch.report(bench.device) is None
    bench.start()
    told.watch.look(1)
    assert (told.taints(), told.published) == ([], 2)
    assert told.watch.report(bench.device) == MpsReport(device=bench.device)


@pytest.mark.programs
def test_a_restart_of_the_supervisor_taints_nothing(bench: MpsBench, tmp_path: Path) -> None:
    supervisor = bench.start()
    bench.client.ensure(quarter(bench.device))
    told = Told(bench, tmp_path, 3600, claim(A, uuid=bench.device))
    told.watch.look(1)
    supervisor.kill()
    supervisor.wait(30)
    told.miss()
    bench.start()
    told.watch.look(1)
    assert (told.taints(), told.published) == ([], 0)


def test_where_nothing_uses_mps_a_missing_supervisor_is_nothing(bench: MpsBench, tmp_path: Path) -> None:
    told = Told(bench, tmp_path, 0, claim(A, uuid=bench.device, mps=None))
    with capture_logs() as log:
        told.miss()
    assert (told.taints(), told.published, log) == ([], 0, [])


def test_a_driver_that_starts_without_a_supervisor_keeps_the_time_that_the_last_one_told(
    bench: MpsBench, tmp_path: Path
) -> None:
    first = Told(bench, tmp_path, 0, SHARE)
    first.miss()
    (before,) = first.health.of(CARD, None)
    second = Told(bench, tmp_path, 3600, SHARE)
    assert second.health.of(CARD, None) == (before,)
    second.miss()
    assert second.health.of(CARD, None) == (before,)


def taints_of_card(node: DriverNode, card: int) -> set[tuple[str, str, str]]:
    slices = [each for each in node.store.under(SLICES) if each["spec"].get("devices")]
    found = [taint for device in slices[card]["spec"]["devices"] for taint in device.get("taints", [])]
    return {(taint["key"], taint["value"], taint["effect"]) for taint in found}


def told_of_share(node: DriverNode) -> tuple[list[tuple[str, str, str]], str]:
    """What the claim's status says: its conditions, and who enforces its limits."""
    (device,) = node.store.objects[f"{CLAIMS}/claim"].get("status", {}).get("devices", [{}])
    conditions = [(each["type"], each["status"], each["reason"]) for each in device.get("conditions", [])]
    return conditions, device.get("data", {}).get("enforcedBy", "")


@pytest.mark.programs
def test_a_real_driver_says_of_shares_that_their_supervisor_is_gone(driver_node: DriverNode) -> None:
    node = driver_node
    asked = node.allocate(allocated(given("gpu-0", 25), uid=A))
    assert not node.prepare(asked)[A].error
    ready = ("Ready", "True", "Prepared")
    well = [ready, ("MpsReady", "True", "DaemonReady"), ("ShareEnforced", "True", "Server")], "Server"
    gone = [ready, ("MpsReady", "Unknown", "SupervisorSilent"), ("ShareEnforced", "Unknown", "Unknown")], "Unknown"
    wait_until(lambda: told_of_share(node) == well, "the status of the share")
    node.kill("mpsd")
    wait_until(lambda: told_of_share(node) == gone, "the word that the supervisor is gone", 120)
    expected = {(f"{DRIVER}/mps-fault", "supervisor-silent", "NoSchedule")}
    wait_until(lambda: taints_of_card(node, 0) == expected, "the taint of the card", 60)
    assert taints_of_card(node, 1) == set()
    node.start("mpsd")
    wait_until(lambda: (told_of_share(node), taints_of_card(node, 0)) == (well, set()), "the word that all is well", 90)
    assert node.unprepare(asked) == {A: ""}


@pytest.mark.programs
def test_a_real_driver_taints_the_card_of_a_dead_daemon_until_it_runs_again(driver_node: DriverNode) -> None:
    asked = driver_node.allocate(allocated(given("gpu-0", 25), uid=A))
    assert not driver_node.prepare(asked)[A].error

    program = driver_node.tree.driver / "usr/bin/nvidia-cuda-mps-control"
    content = program.read_text()
    program.write_text("#!/bin/sh\nexit 3\n")
    (daemon,) = driver_node.state.read().mps_daemons
    os.kill(daemon.pid, signal.SIGKILL)
    expected = {(f"{DRIVER}/mps-fault", "down", "NoSchedule")}
    wait_until(lambda: taints_of_card(driver_node, 0) == expected, "the taint of the card", 60)
    assert taints_of_card(driver_node, 1) == set()
    program.write_text(content)
    wait_until(lambda: taints_of_card(driver_node, 0) == set(), "the end of the taint", 90)
    assert driver_node.unprepare(asked) == {A: ""}
