"""The thread that brings cards into the modes that claims wait for, step by step as `deciding` says.

Each step is decided anew from the claims, the hardware and the ledger, so nothing is lost with the process. The lock of
a card is held while it is looked at and changed, so that no claim is prepared on it meanwhile; the API server is asked
without it. What is published is published before the scheduler is told, so that it does not pick the card again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import structlog

from dra.kube.errors import KubeError, NotFoundError
from dra.kube.port import Cluster
from nodedriver.boundary import boundary
from nodedriver.cardmodes import CardMode
from nodedriver.checkpoint import CheckpointError
from nodedriver.deadline import of_call
from nodedriver.facts import PciAddress
from nodedriver.locks import Locks, LockTimeoutError
from nodedriver.maintenance.awaited import Awaited, conditions_request
from nodedriver.maintenance.deciding import TRY_SECONDS, Kept, Rules, Seen, decide, say
from nodedriver.maintenance.following import AwaitedClaims
from nodedriver.maintenance.ledger import Ledger
from nodedriver.maintenance.workshop import Workshop
from nodedriver.ports import GpuError, ModeAnswer

_log = structlog.get_logger()
_BUSY_SECONDS = 1.0  # between two looks at a card that changes its mode
_IDLE_SECONDS = 5.0  # and at one that failed to
_UNSEEN = "a client that NVML does not name"
_ERRORS = (GpuError, OSError, CheckpointError, LockTimeoutError)


class Maintenance:
    """Works on one card after another. `wait` is how many seconds others may hold a card."""

    def __init__(self, claims: AwaitedClaims, ledger: Ledger, workshop: Workshop, wait: float) -> None:
        self._claims = claims
        self._ledger = ledger
        self._workshop = workshop
        self._rules = Rules(claims.naming.driver_name, wait)
        self._stubborn = ledger.stubborn()
        self._said: dict[tuple[str, str, str | None], Awaited] = {}
        self._has_tried = False  # in this look
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def through(self, cluster: Cluster, locks: Locks, publish: Callable[[], None]) -> Maintenance:
        """Work with these: `publish` writes the slices anew."""
        self._cluster = cluster
        self._locks = locks
        self._publish = publish
        return self

    def start(self) -> None:
        """Begin."""
        self._claims.start(self._woken.set)
        self._ledger.tell(self._woken.set)
        self._thread.start()

    def stop(self) -> None:
        """End after the card that is on its way; with what is left the next process goes on."""
        self._stopping.set()
        self._claims.stop()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            busy = True
            try:
                busy = self._look()
            except Exception:  # noqa: BLE001 - a fault of ours must not end the work on the cards
                _log.exception("maintenance met a fault")
            self._woken.wait(_BUSY_SECONDS if busy else _IDLE_SECONDS)
            self._woken.clear()

    def _look(self) -> bool:
        """Take a step on each card that needs one; whether claims wait for any."""
        self._publish_if_stubborn()
        found, kept = self._claims.now(), self._ledger.cards()
        if kept:
            self._claims.want()
        if found is None:
            return False
        awaited = [self._as_said(each) for each in found]
        self._said = {_key(each): each for each in awaited}
        waiting = {each.gpu for each in awaited if not each.is_settled}
        self._has_tried = False
        for gpu in sorted(waiting | kept.keys(), key=lambda gpu: (kept[gpu].tries if gpu in kept else 0, gpu)):
            if self._stopping.is_set():
                break
            self._attend(gpu, awaited, kept.get(gpu))
        return bool(waiting)

    def _publish_if_stubborn(self) -> None:
        """Prepare may have met a card that does not change its mode: its devices are published anew."""
        stubborn = self._ledger.stubborn()
        if stubborn != self._stubborn:
            self._stubborn = stubborn
            self._publish()

    def _as_said(self, each: Awaited) -> Awaited:
        """With what was written a moment ago, whose echo the watch may not have brought yet."""
        said = self._said.get(_key(each))
        return each if said is None or each.is_settled else replace(each, said=said.said)

    def _attend(self, gpu: PciAddress, awaited: Sequence[Awaited], kept: Kept | None) -> None:
        mine = [each for each in awaited if each.gpu == gpu]
        try:
            with self._locks.gpus([gpu]):
                seen, after = self._step(gpu, mine, kept)
        except _ERRORS as error:
            _log.warning("card not attended to", gpu=gpu, error=str(error))
            return
        if after != kept:
            self._publish()
            if kept is None or after is None:
                self._woken.set()  # begun or done: go on at once, and pause between tries
        for each in mine:
            said = say(each, seen, after, self._rules, datetime.now(UTC))
            if said != each:
                boundary(gpu, "tell the scheduler")
                self._tell(each, said, awaited)

    def _step(self, gpu: PciAddress, mine: Sequence[Awaited], kept: Kept | None) -> tuple[Seen, Kept | None]:
        """Look, decide, keep, act; how the card is then, and what is kept of it. Its lock is held."""
        target = kept.target if kept else next((each.mode for each in mine if each.mode), CardMode.WHOLE)
        seen = self._workshop.look(gpu, target)
        decision = decide(seen, mine, kept, self._rules, datetime.now(UTC))
        if decision.switch and self._has_tried:
            self._woken.set()
            return seen, kept  # one try a look, so that no card's deadline waits for the tries of all others
        self._keep(gpu, kept, decision.kept)
        if decision.kept and decision.switch:
            return self._switch(gpu, mine, decision.kept)
        self._take_back(gpu, seen)
        return seen, decision.kept

    def _switch(self, gpu: PciAddress, mine: Sequence[Awaited], kept: Kept) -> tuple[Seen, Kept | None]:
        """A try. Where somebody unseen holds the card it was none, and they are waited for."""
        self._has_tried = True
        with of_call(TRY_SECONDS):
            answer, why = self._try(gpu, kept.target)
            seen = self._workshop.look(gpu, kept.target)
            self._take_back(gpu, seen)
        if answer is ModeAnswer.IN_USE:
            seen, kept = replace(seen, obstacles=(_UNSEEN,)), replace(kept, tries=kept.tries - 1)
        if answer is ModeAnswer.DONE:
            self._ledger.unmark(gpu)
        after = replace(kept, why=why) if why else decide(seen, mine, kept, self._rules, datetime.now(UTC)).kept
        self._keep(gpu, kept, after)
        return seen, after

    def _try(self, gpu: PciAddress, target: CardMode) -> tuple[ModeAnswer | None, str]:
        """The answer, or why there is none."""
        try:
            return self._workshop.switch(gpu, target), ""
        except GpuError as error:
            return None, str(error)

    def _take_back(self, gpu: PciAddress, seen: Seen) -> None:
        """What is refused is tried at the next look: the card is kept as long as a wish is left with it."""
        try:
            self._workshop.take_back(gpu, seen)
        except GpuError as error:
            _log.warning("wish for another mode not taken back yet", gpu=gpu, error=str(error))

    def _keep(self, gpu: PciAddress, before: Kept | None, after: Kept | None) -> None:
        if after == before:
            return
        boundary(gpu, "keep in the ledger")
        self._ledger.keep(gpu, after)
        if after is None:
            _log.info("card offered again", gpu=gpu)
        else:
            _log.warning(
                "card changes its mode by a reset", gpu=gpu, mode=after.target, phase=after.phase, tries=after.tries,
                reason=after.why,
            )  # fmt: skip

    def _tell(self, before: Awaited, after: Awaited, awaited: Sequence[Awaited]) -> None:
        """Write it into the claim's status; what can't be written is tried again at the next look."""
        self._said[_key(after)] = after
        devices = [self._said[_key(each)] for each in awaited if each.ref == after.ref]
        log = _log.bind(namespace=after.ref.namespace, name=after.ref.name, uid=after.ref.uid, device=after.device)
        try:
            self._cluster.send(conditions_request(self._claims.naming, devices))
        except NotFoundError:
            log.info("resource claim was gone before its condition was written")
        except KubeError as error:
            self._said[_key(after)] = before
            log.warning("condition of a resource claim not written", error=str(error))
        else:
            log.info("condition of a resource claim written", says=[f"{c.type}={c.status}" for c in after.said])


def _key(each: Awaited) -> tuple[str, str, str | None]:
    return each.ref.uid, each.device, each.share_id
