"""Which daemons should run: started when asked for, kept by their keepers, stopped when told.

One keeper per device; requests for different devices run side by side. What was asked for outlives the supervisor in
the records: the next one takes over what still runs and starts the rest anew.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import structlog

from nodedriver.mpsd.board import Board
from nodedriver.mpsd.control import Program
from nodedriver.mpsd.daemon import Daemon, Manner
from nodedriver.mpsd.keeper import Keeper
from nodedriver.mpsd.record import Places, Record, all_places, boot_id, places_of
from nodedriver.mpsd.sharedmemory import can_isolate
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsReports

log = structlog.get_logger(__name__)


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
        self._board = Board()

    def resume(self) -> None:
        """Go on with what an earlier supervisor left: take over, start again, or clear away what is of another boot."""
        records = list(self._left())
        with ThreadPoolExecutor(max_workers=max(len(records), 1)) as pool:
            list(pool.map(lambda record: self._keeper(record.spec.device, record.protocol).resume(record), records))

    def _left(self) -> Iterator[Record]:
        for places in all_places(self._mps_dir):
            try:
                record = places.read()
            except msgspec.MsgspecError as error:
                log.error("MPS daemon record unreadable, left alone", path=str(places.record), error=str(error))  # noqa: TRY400 - the file is at fault, not this code
                continue
            if record is None or record.boot_id != boot_id():
                shutil.rmtree(places.folder)
            else:
                yield record

    def ensure(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        """See `nodedriver.ports.Mps`."""
        protocol = self._program.protocol if spec.shares else 2  # drivers before protocol 3 name no shares
        return self._keeper(spec.device, protocol).ensure(spec)

    def remove(self, device: str) -> None:
        """See `nodedriver.ports.Mps`."""
        if not places_of(self._mps_dir, device).folder.exists():
            return
        keeper = self._keeper(device, self._program.protocol)
        keeper.stop()
        keeper.forget()
        with self._lock:
            self._keepers.pop(device, None)
        self._board.drop(device)

    def end_clients(self, device: str, claim: str) -> None:
        """See `nodedriver.ports.Mps`."""
        with self._lock:
            keeper = self._keepers.get(device)
        if keeper is not None:
            keeper.end_clients(claim)

    def list(self) -> tuple[MpsDaemonStatus, ...]:
        """See `nodedriver.ports.Mps`."""
        with self._lock:
            keepers = list(self._keepers.values())
        return tuple(status for keeper in keepers if (status := keeper.status()) is not None)

    def watch(self, revision: int, seconds: float) -> MpsReports:
        """See `nodedriver.ports.Mps`."""
        return self._board.watch(revision, seconds)

    def stop(self) -> None:
        """Stop all daemons side by side. Their records stay, so the next supervisor starts them again."""
        with self._lock:
            keepers = list(self._keepers.values())
        with ThreadPoolExecutor(max_workers=max(len(keepers), 1)) as pool:
            list(pool.map(Keeper.stop, keepers))

    def _keeper(self, device: str, protocol: int) -> Keeper:
        """The device's keeper; a new one's daemon speaks that protocol."""
        with self._lock:
            if device not in self._keepers:
                places: Places = places_of(self._mps_dir, device)
                manner = Manner(isolated=self._isolated, protocol=protocol, remark=self._remark(protocol))
                if manner.remark:
                    log.info("MPS daemon does not speak as asked for", device=device, reason=manner.remark)
                self._keepers[device] = Keeper(Daemon(self._program, places, device, manner), self._board)
            return self._keepers[device]

    def _remark(self, protocol: int) -> str:
        """Why a daemon does not speak as the settings say, "" where it does."""
        if protocol == self._program.protocol:
            return self._program.remark
        return (
            f"it speaks MPS protocol {protocol} and keeps it until no claim needs this daemon; "
            f"new daemons speak protocol {self._program.protocol}"
        )
