"""The file of the cards that change their mode by a reset, or failed to, and the taints that follow from it.

Read anew each time, since two drivers may overlap in an update and must publish the same; written under the short lock
of the checkpoint. What another boot wrote does not count: a restart of the node frees every card. A broken file is an
empty one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import structlog

from dra.objects import DeviceTaint
from nodedriver.cardmodes import CardMode
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.files import write_atomically
from nodedriver.locks import Locks
from nodedriver.maintenance.deciding import Kept, Phase

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """`stubborn`: cards that did not change their mode although they should when idle."""

    boot_id: str = ""
    cards: dict[PciAddress, Kept] = field(default_factory=dict)
    stubborn: frozenset[PciAddress] = frozenset()


_DECODER = msgspec.json.Decoder(_Page)
_VALUES = {Phase.WORKING: "reset-pending", Phase.FAILED: "reset-failed"}


class Ledger:
    """What is kept of each card. What writes raises OSError where the disk says no, and LockTimeoutError."""

    def __init__(self, driver_name: str, path: Path, boot_id: str, locks: Locks) -> None:
        self._driver_name = driver_name
        self._path = path
        self._boot_id = boot_id
        self._locks = locks
        self._marked: Callable[[], None] = lambda: None

    def tell(self, marked: Callable[[], None]) -> None:
        """From now on call that after a card was marked."""
        self._marked = marked

    def cards(self) -> dict[PciAddress, Kept]:
        """The cards that are worked on, or failed."""
        return self._read().cards

    def stubborn(self) -> frozenset[PciAddress]:
        """The cards that do not change their mode when idle, although their model does."""
        return self._read().stubborn

    def keep(self, gpu: PciAddress, kept: Kept | None) -> None:
        """Remember that of a card, or nothing, durably."""
        with self._locks.checkpoint():
            page = self._read()
            cards = {address: each for address, each in page.cards.items() if address != gpu}
            self._write(replace(page, cards=cards if kept is None else {**cards, gpu: kept}))

    def mark(self, gpu: PciAddress) -> None:
        """From now on pods wait for a change of this card's mode."""
        with self._locks.checkpoint():
            page = self._read()
            if gpu not in page.stubborn:
                self._write(replace(page, stubborn=page.stubborn | {gpu}))
        self._marked()

    def unmark(self, gpu: PciAddress) -> None:
        """It changed its mode without a reset."""
        with self._locks.checkpoint():
            page = self._read()
            if gpu in page.stubborn:
                self._write(replace(page, stubborn=page.stubborn - {gpu}))

    def _read(self) -> _Page:
        nothing = _Page(boot_id=self._boot_id)
        try:
            page = _DECODER.decode(self._path.read_bytes())
        except FileNotFoundError:
            return nothing
        except msgspec.MsgspecError as error:
            _log.warning("record of resets unreadable, begun anew", path=str(self._path), error=str(error))
            return nothing
        return page if page.boot_id == self._boot_id else nothing

    def _write(self, page: _Page) -> None:
        write_atomically(self._path, msgspec.json.format(msgspec.json.encode(page), indent=1) + b"\n")

    def taints(self, gpu: PciAddress, placement: MigPlacement | None) -> tuple[DeviceTaint, ...]:
        """A card that is worked on takes no claims; one that failed serves on in its mode, and not in the other."""
        kept = self.cards().get(gpu)
        mode = CardMode.MIG if placement else CardMode.WHOLE
        if kept is None or (kept.phase is Phase.FAILED and mode is not kept.target):
            return ()
        key = f"{self._driver_name}/maintenance"
        return (DeviceTaint(key=key, value=_VALUES[kept.phase], effect="NoSchedule", time_added=kept.since),)
