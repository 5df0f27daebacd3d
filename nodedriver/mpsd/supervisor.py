"""Which daemons should run, and that they do: started when asked for, again when they die, stopped when told.

One keeper per device; requests for different devices run side by side. What was asked for outlives the supervisor in
the records: the next one takes over what still runs and starts the rest anew.
"""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import structlog

from nodedriver.mpsd.control import Program
from nodedriver.mpsd.daemon import Daemon
from nodedriver.mpsd.record import Places, Record, all_places, boot_id, places_of
from nodedriver.mpsd.sharedmemory import can_isolate
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError

log = structlog.get_logger(__name__)

_FIRST_DELAY = 1.0  # seconds before a daemon that died is started again; doubled while it keeps dying
_LONGEST_DELAY = 30.0
_RAN_WELL = 60.0  # seconds after which a death counts as the first again


class Supervisor:
    """The daemons of this node."""

    def __init__(self, mps_dir: Path, program: Program) -> None:
        self._isolated = can_isolate(mps_dir)
        if not self._isolated:
            log.warning("MPS daemons share /dev/shm", reason="no right to make mount namespaces (CAP_SYS_ADMIN)")
        self._mps_dir = mps_dir
        self._program = program
        self._lock = threading.Lock()
        self._keepers: dict[str, Keeper] = {}

    def resume(self) -> None:
        """Go on with what an earlier supervisor left: take over, start again, or clear away what is of another boot."""
        for places in all_places(self._mps_dir):
            try:
                record = places.read()
            except msgspec.MsgspecError as error:
                log.error("MPS daemon record unreadable, left alone", path=str(places.record), error=str(error))  # noqa: TRY400 - the file is at fault, not this code
                continue
            if record is None or record.boot_id != boot_id():
                shutil.rmtree(places.folder)
            else:
                self._keeper(record.spec.device).resume(record)

    def ensure(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        """See `nodedriver.ports.Mps`."""
        return self._keeper(spec.device).ensure(spec)

    def remove(self, device: str) -> None:
        """See `nodedriver.ports.Mps`."""
        if not places_of(self._mps_dir, device).folder.exists():
            return
        keeper = self._keeper(device)
        keeper.stop()
        keeper.forget()
        with self._lock:
            self._keepers.pop(device, None)

    def list(self) -> tuple[MpsDaemonStatus, ...]:
        """See `nodedriver.ports.Mps`."""
        with self._lock:
            keepers = list(self._keepers.values())
        return tuple(status for keeper in keepers if (status := keeper.status()) is not None)

    def stop(self) -> None:
        """Stop all daemons side by side. Their records stay, so the next supervisor starts them again."""
        with self._lock:
            keepers = list(self._keepers.values())
        with ThreadPoolExecutor(max_workers=max(len(keepers), 1)) as pool:
            list(pool.map(Keeper.stop, keepers))

    def _keeper(self, device: str) -> Keeper:
        with self._lock:
            if device not in self._keepers:
                places: Places = places_of(self._mps_dir, device)
                self._keepers[device] = Keeper(Daemon(self._program, places, device, isolated=self._isolated))
            return self._keepers[device]


class Keeper:
    """Keeps one daemon running with the limits asked for last."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._spec: MpsDaemonSpec | None = None

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
        with self._lock:
            if self._stopping.is_set():
                raise MpsError(f"the MPS daemon of {spec.device} is being stopped: ask again")
            is_first, self._spec = self._spec is None, spec
            try:
                if not self._daemon.is_alive():
                    self._daemon.start(spec)
                    log.info("MPS daemon started", device=spec.device)
                return self._daemon.apply(spec)
            finally:
                if is_first:
                    threading.Thread(target=self._keep, name=f"keeper {spec.device}", daemon=True).start()

    def status(self) -> MpsDaemonStatus | None:
        """What the daemon says, or None when it does not run now."""
        with self._lock:
            return self._daemon.status() if self._daemon.is_alive() else None

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

    def _keep(self) -> None:
        """Start it again whenever it dies, at growing distances while it keeps dying."""
        delay = _FIRST_DELAY
        while not self._stopping.is_set():
            began = time.monotonic()
            self._daemon.wait()
            if time.monotonic() - began > _RAN_WELL:
                delay = _FIRST_DELAY
            if self._stopping.wait(delay):
                return
            delay = min(delay * 2, _LONGEST_DELAY)
            self._restart()

    def _restart(self) -> None:
        with self._lock:
            if self._stopping.is_set() or self._spec is None or self._daemon.is_alive():
                return
            try:
                self._daemon.start(self._spec)
                self._daemon.apply(self._spec)
            except MpsError as error:
                log.warning("MPS daemon could not be started again", device=self._daemon.device, error=str(error))
            else:
                log.warning("MPS daemon had ended and was started again", device=self._daemon.device)
