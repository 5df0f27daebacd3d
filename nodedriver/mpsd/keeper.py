"""Keeps one daemon running with the limits asked for last, and says on the board how it is.

The end of the daemon or of its server is heard at once, by their process ids; a server at fault, and limits that
somebody else changed, are found by a look every few seconds. What was mended is ready once its limits were read back.
"""

from __future__ import annotations

import threading
import time

import structlog

from nodedriver.mpsd.backoff import Backoff
from nodedriver.mpsd.board import Board
from nodedriver.mpsd.daemon import LIMITS_CHANGED, SERVER_ENDED, Daemon
from nodedriver.mpsd.record import Record
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError, MpsReport, MpsState

log = structlog.get_logger(__name__)

_TO_MEND = (SERVER_ENDED, LIMITS_CHANGED)
_LOOK_SECONDS = 10.0  # between two looks while nothing ends; each runs NVIDIA's program
_FAULT_SECONDS = 1.0  # the same while pods wait for the end of a fault


class Keeper:
    """One daemon's keeper. Requests come from several threads; a thread of its own watches."""

    def __init__(self, daemon: Daemon, board: Board) -> None:
        self._daemon = daemon
        self._board = board
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._spec: MpsDaemonSpec | None = None
        self._said = daemon.report()

    def resume(self, record: Record) -> None:
        """Take over the recorded process if it lives, else start it; a failure is logged and tried again."""
        if record.process is not None and record.process.is_alive():
            self._daemon.take_over(record.process)
            log.info("MPS daemon taken over", device=self._daemon.device, pid=record.process.pid)
        try:
            self.ensure(record.spec)
        except MpsError as error:
            log.warning("MPS daemon not resumed yet", device=self._daemon.device, error=str(error))

    def ensure(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        """Let it run with these limits."""
        if known := self._known(spec):
            return known
        with self._lock:
            if self._stopping.is_set():
                raise MpsError(f"the MPS daemon of {spec.device} is being stopped: ask again")
            is_first, self._spec = self._spec is None, spec
            try:
                return self._run(spec)
            finally:
                if is_first:
                    threading.Thread(target=self._keep, name=f"keeper {spec.device}", daemon=True).start()

    def status(self) -> MpsDaemonStatus | None:
        """What the daemon says, or None when it does not run or answer now."""
        with self._lock:
            try:
                return self._daemon.status() if self._daemon.is_alive() else None
            except MpsError as error:
                log.warning("MPS daemon does not answer", device=self._daemon.device, error=str(error))
                return None

    def end_clients(self, claim: str) -> None:
        """End the clients of that claim; MpsError where one stays."""
        with self._lock:
            if self._spec is not None:
                self._daemon.end_clients(claim, self._spec)

    def stop(self) -> None:
        """Stop it for good."""
        self._stopping.set()
        with self._lock:
            self._daemon.stop()
        log.info("MPS daemon stopped", device=self._daemon.device)

    def forget(self) -> None:
        """Remove its folder."""
        with self._lock:
            self._daemon.forget()

    def _known(self, spec: MpsDaemonSpec) -> MpsDaemonStatus | None:
        """What it said when these limits were set; None where that may not hold. Waits for no look, which takes long:
        what ends is heard, and what is changed is found by the next look.
        """
        if self._spec is None or self._stopping.is_set() or self._said.state is not MpsState.READY:
            return None
        known = self._daemon.known(spec)
        if known:
            self._spec = spec
        return known

    def _run(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        """The lock is held."""
        try:
            if not self._daemon.is_alive():
                self._daemon.start(spec)
                log.info("MPS daemon started", device=spec.device)
            status = self._daemon.apply(spec)
        except (MpsError, OSError) as error:  # a full disk takes no record
            self._say(self._daemon.report(MpsState.DOWN, str(error)))
            raise
        if self._said.state is not MpsState.FAULT:  # which only a look finds over
            self._say(self._daemon.report())
        return status

    def _keep(self) -> None:
        """Look, start again what ended, at growing distances while it keeps ending, and wait for the next end."""
        backoff = Backoff()
        while not self._stopping.is_set():
            try:
                if self._must_mend():
                    if self._stopping.wait(backoff.delay(time.monotonic())):
                        return
                    self._start_again()
                self._daemon.wait_for_end(_FAULT_SECONDS if self._said.state is MpsState.FAULT else _LOOK_SECONDS)
            except Exception:  # a fault of ours must not end the keeping
                log.exception("keeper of an MPS daemon met a fault", device=self._daemon.device)
                self._stopping.wait(_FAULT_SECONDS)

    def _must_mend(self) -> bool:
        """Whether it ended or is not as asked for; one that lives and does not answer is left to answer again."""
        with self._lock:
            if self._stopping.is_set() or self._spec is None:
                return False
            report = self._daemon.look(self._spec)
            if report.state is not self._said.state:  # while it stays down, why it could not be started says most
                self._say(report)
            return not self._daemon.is_alive() or report.reason in _TO_MEND

    def _start_again(self) -> None:
        with self._lock:
            if self._stopping.is_set() or self._spec is None:
                return
            try:
                self._run(self._spec)
            except (MpsError, OSError) as error:
                log.warning("MPS daemon could not be started again", device=self._daemon.device, error=str(error))

    def _say(self, report: MpsReport) -> None:
        self._said = report
        if self._board.put(report) and report.state is not MpsState.READY:
            log.warning("MPS daemon is not ready", device=report.device, state=report.state, reason=report.reason)
