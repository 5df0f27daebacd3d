"""The file of the cards that change their mode by a reset, or failed to, and the taints that follow from it.

Read anew each time, since two drivers may overlap in an update and must publish the same. What another boot wrote does
not count: a restart of the node frees every card. A broken file is an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import structlog

from dra.objects import DeviceTaint
from nodedriver.cardmodes import CardMode
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.files import write_atomically
from nodedriver.maintenance.deciding import Kept, Phase

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    boot_id: str = ""
    cards: dict[PciAddress, Kept] = field(default_factory=dict)


_DECODER = msgspec.json.Decoder(_Page)
_VALUES = {Phase.WORKING: "reset-pending", Phase.FAILED: "reset-failed"}


class Ledger:
    """What is kept of each card. One thread writes; any may read."""

    def __init__(self, driver_name: str, path: Path, boot_id: str) -> None:
        self._driver_name = driver_name
        self._path = path
        self._boot_id = boot_id

    def cards(self) -> dict[PciAddress, Kept]:
        """All of it."""
        try:
            page = _DECODER.decode(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except msgspec.MsgspecError as error:
            _log.warning("record of resets unreadable, begun anew", path=str(self._path), error=str(error))
            return {}
        return page.cards if page.boot_id == self._boot_id else {}

    def keep(self, gpu: PciAddress, kept: Kept | None) -> None:
        """Remember that of a card, or nothing, durably. OSError where the disk says no."""
        cards = {address: each for address, each in self.cards().items() if address != gpu}
        if kept is not None:
            cards[gpu] = kept
        page = _Page(boot_id=self._boot_id, cards=cards)
        write_atomically(self._path, msgspec.json.format(msgspec.json.encode(page), indent=1) + b"\n")

    def taints(self, gpu: PciAddress, placement: MigPlacement | None) -> tuple[DeviceTaint, ...]:
        """A card that is worked on takes no claims; one that failed serves on in its mode, and not in the other."""
        kept = self.cards().get(gpu)
        mode = CardMode.MIG if placement else CardMode.WHOLE
        if kept is None or (kept.phase is Phase.FAILED and mode is not kept.target):
            return ()
        key = f"{self._driver_name}/maintenance"
        return (DeviceTaint(key=key, value=_VALUES[kept.phase], effect="NoSchedule", time_added=kept.since),)
