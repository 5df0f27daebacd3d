"""The thread that hears of errors of the cards, looks at each card now and then, and has changes published at once.

It decides nothing: `ailments` does. It never stands in the way of prepare; a fault here is logged and tried again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import structlog

from dra.objects import DeviceTaint
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health import record
from nodedriver.health.ailments import Ailment, Ailments, CardEvent, CardLook, Policy, taints_of
from nodedriver.health.xids import name_of, severity_of
from nodedriver.ports import GpuError

_log = structlog.get_logger()
WAIT_MS = 200  # of one wait for events, which can't be interrupted: a stop has to wait for its end, and so has a reset
RETRY_SECONDS = 1.0  # where there is nothing to wait for
LOOK_SECONDS = 60.0  # between two looks at every card


# A look at a card; None of one that another driver has, so that there is nothing to see.
type Looking = Callable[[PciAddress], CardLook | None]


class Events(Protocol):
    """The errors of the cards as they happen; GpuError where NVML can't tell."""

    @property
    def unmonitored(self) -> Sequence[PciAddress]:
        """The cards whose errors can't be heard."""

    def wait(self, milliseconds: int) -> CardEvent | None:
        """The next one; None when the time is over."""


class Health:
    """What ails the cards now. `taints` may be asked from any thread."""

    def __init__(self, driver_name: str, policy: Policy, path: Path, boot_id: str) -> None:
        self._driver_name = driver_name
        self._policy = policy
        self._path = path
        self._lock = threading.Lock()
        self._ailments = record.read(path, boot_id)

    def taints(self, gpu: PciAddress, placement: MigPlacement | None) -> tuple[DeviceTaint, ...]:
        """The taints of a device."""
        return taints_of(self._driver_name, self._ailments.of(gpu, placement), self._policy)

    def of(self, gpu: PciAddress, placement: MigPlacement | None) -> tuple[Ailment, ...]:
        """What ails a device."""
        return self._ailments.of(gpu, placement)

    def change(self, step: Callable[[Ailments], Ailments]) -> bool:
        """Replace what is known by what the step makes of it, and say whether anything changed."""
        with self._lock:
            before, after = self._ailments, step(self._ailments)
            if after == before:
                return False
            self._ailments = after
            _keep(self._path, after)
        _tell(before, after)
        return True


class Monitor:
    """The thread. `changed` is called after each change, to publish."""

    def __init__(self, health: Health, events: Events, look: Looking, changed: Callable[[], None]) -> None:
        self._health = health
        self._events = events
        self._look = look
        self._changed = changed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)
        self._gpus: tuple[PciAddress, ...] = ()

    def watch(self, gpus: Sequence[PciAddress]) -> Monitor:
        """Look at these cards."""
        self._gpus = tuple(gpus)
        return self

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the wait that is on its way."""
        self._stopping.set()
        self._thread.join()

    def look_around(self) -> None:
        """Look at every card once."""
        unheard = self._events.unmonitored

        def step(ailments: Ailments) -> Ailments:
            for gpu in self._gpus:
                seen = self._look(gpu)
                ailments = ailments if seen is None else ailments.after_look(gpu, seen, _now())
            return ailments.with_unheard(unheard, _now())

        if self._health.change(step):
            self._changed()

    def _run(self) -> None:
        next_look = 0.0
        while not self._stopping.is_set():
            try:
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + LOOK_SECONDS
                    self.look_around()
                self._hear()
            except Exception:  # noqa: BLE001 - a fault of ours must not end the watch over the cards
                _log.exception("health monitor met a fault")
                self._stopping.wait(RETRY_SECONDS)

    def _hear(self) -> None:
        try:
            event = self._events.wait(WAIT_MS)
        except GpuError as error:
            _log.warning("errors of the cards not heard", error=str(error))
            self._stopping.wait(RETRY_SECONDS)
            return
        if event is None:
            return
        _log.warning(
            "critical error of a card", gpu=event.gpu, xid=event.xid, name=name_of(event.xid),
            asks_for=severity_of(event.xid), placement=str(event.placement or ""),
        )  # fmt: skip
        if self._health.change(lambda ailments: ailments.with_event(event, _now())):
            self._changed()


def _keep(path: Path, ailments: Ailments) -> None:
    try:
        record.write(path, ailments)
    except OSError as error:
        _log.warning("record of ailments not written", path=str(path), error=str(error))


def _tell(before: Ailments, after: Ailments) -> None:
    for each in after.found:
        if each not in before.found:
            _log.warning("card ails", gpu=each.gpu, ailment=str(each))
    for each in before.found:
        if each not in after.found:
            _log.info("card recovered", gpu=each.gpu, ailment=str(each))


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
