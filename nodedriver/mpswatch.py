"""The thread that follows how the MPS daemons are: faults become ailments of their devices, and claims are told.

It decides nothing about daemons, which the supervisor does. While the supervisor does not answer, that nobody can tell
how its daemons are is said of all that claims have under MPS, once that has lasted longer than its restart.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from dra.names import ClaimUID
from nodedriver.checkpoint import CheckpointError
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health.ailments import SILENT, Ailment, Cause
from nodedriver.health.monitor import Health
from nodedriver.health.xids import Severity
from nodedriver.holding import Checkpoint, PreparedClaim, PreparedDevice
from nodedriver.ports import MpsError, MpsReport, MpsReports, MpsState

_log = structlog.get_logger()
WATCH_SECONDS = 30.0  # of one question
RETRY_SECONDS = 2.0
SILENCE_SECONDS = 30.0  # a new pod of the supervisor, or an update of it, takes less, and must taint nothing

type Watch = Callable[[int, float], MpsReports]
type Wish = Callable[[Iterable[ClaimUID]], None]


@dataclass(frozen=True, slots=True)
class _Silence:
    """The first question without an answer: when it was, by the clock that never jumps, and in RFC 3339."""

    began: float
    since: str


class MpsWatch:
    """What the supervisor said last. `report` may be asked from any thread."""

    def __init__(
        self, watch: Watch, read: Callable[[], Checkpoint], health: Health, silence: float = SILENCE_SECONDS
    ) -> None:
        """`watch` asks the supervisor (see `Mps.watch`), `read` gives the checkpoint of the moment.

        `silence`: so many seconds the supervisor may give no answer until that is told.
        """
        self._watch = watch
        self._patience = silence
        self._silence: _Silence | None = None
        self._read = read
        self._health = health
        self._known = MpsReports()
        self._protocols: dict[str, int] = {}
        self._changed: Callable[[], None] = lambda: None
        self._wish: Wish = lambda _: None
        self._stopping = threading.Event()
        self._acting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="mps-watch", daemon=True)

    def tell(self, changed: Callable[[], None], wish: Wish) -> MpsWatch:
        """Whom to tell: `changed` of other ailments, `wish` of the claims whose daemon is otherwise than before."""
        self._changed, self._wish = changed, wish
        return self

    def report(self, device: str) -> MpsReport | None:
        """How the daemon of that device is; None where the supervisor does not say."""
        return next((each for each in self._known.daemons if each.device == device), None)

    def protocol(self, device: str) -> int:
        """What the daemon of that device speaks: asked once, since a daemon keeps it; 2 where nobody answers."""
        if device not in self._protocols:
            with contextlib.suppress(MpsError):
                self._protocols = _protocols(self._watch(0, 0))
        return self._protocols.get(device, 2)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Say nothing more, from now on. A question that is on its way ends with the process: nobody waits for it."""
        self._stopping.set()
        with self._acting:
            pass  # what is done about an answer right now is done to its end

    def look(self, seconds: float) -> None:
        """Wait so long for news and act on it. MpsError where the supervisor does not answer."""
        before = self._known
        try:
            now = self._watch(before.revision, seconds)
        except MpsError as error:
            self._miss(error)
            raise
        self._silence = None
        with self._acting:
            if now.revision != before.revision and not self._stopping.is_set():
                self._act(before, now)

    def _act(self, before: MpsReports, now: MpsReports) -> None:
        claims = self._read().claims.values()
        self._known = now
        self._protocols = _protocols(now)
        self._ail(faults_of(now.daemons, claims, _now()))
        self._wish(_concerned({each.device for each in set(before.daemons) ^ set(now.daemons)}, claims))

    def _miss(self, error: MpsError) -> None:
        """No answer: what was known holds no more, and after a while that is told. The next answer tells all anew."""
        if self._known.revision:
            _log.warning("MPS daemons not watched", error=str(error))
        self._known = MpsReports()
        self._silence = self._silence or _Silence(time.monotonic(), _now())
        if time.monotonic() - self._silence.began < self._patience:
            return
        with self._acting:
            if not self._stopping.is_set():
                self._ail(untold_of(self._read().claims.values(), self._silence.since))

    def _ail(self, faults: Iterable[Ailment]) -> None:
        if self._health.change(lambda ailments: ailments.with_daemons(faults)):
            self._changed()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look(WATCH_SECONDS)
            except MpsError:
                self._stopping.wait(RETRY_SECONDS)
            except CheckpointError as error:
                _log.warning("MPS daemons not told of", error=str(error))
                self._known = MpsReports()
                self._stopping.wait(RETRY_SECONDS)
            except Exception:  # noqa: BLE001 - a fault of ours must not end the watch
                _log.exception("watch over the MPS daemons met a fault")
                self._stopping.wait(RETRY_SECONDS)


def faults_of(reports: Iterable[MpsReport], claims: Collection[PreparedClaim], now: str) -> tuple[Ailment, ...]:
    """The ailments of daemons that are not ready, on the silicon that they serve; one without a claim ails nobody."""
    ill = {each.device: each for each in reports if each.state is not MpsState.READY}
    places = {device.uuid: device for _, device in _served(claims) if device.uuid in ill}
    return tuple(
        _ailment(device.gpu, device.placement, ill[uuid].state, now) for uuid, device in sorted(places.items())
    )


def untold_of(claims: Iterable[PreparedClaim], since: str) -> tuple[Ailment, ...]:
    """The ailments of all silicon that these claims have under MPS, while nobody tells how its daemons are."""
    places = {(device.gpu, device.placement) for _, device in _served(claims)}
    return tuple(_ailment(gpu, placement, SILENT, since) for gpu, placement in sorted(places, key=str))


def _ailment(gpu: PciAddress, placement: MigPlacement | None, state: str, since: str) -> Ailment:
    return Ailment(gpu=gpu, cause=Cause.MPS, severity=Severity.DAEMON, since=since, placement=placement, state=state)


def _protocols(reports: MpsReports) -> dict[str, int]:
    return {each.device: each.protocol for each in reports.daemons}


def _concerned(devices: Collection[str], claims: Collection[PreparedClaim]) -> list[ClaimUID]:
    return sorted({claim.uid for claim, device in _served(claims) if device.uuid in devices})


def _served(claims: Iterable[PreparedClaim]) -> Iterator[tuple[PreparedClaim, PreparedDevice]]:
    return ((claim, device) for claim in claims for device in claim.devices if device.mps)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
