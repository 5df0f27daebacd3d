"""The cards as they are at this moment: what is published follows their MIG mode, whoever changed it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

import structlog

from nodedriver.facts import CardFacts, GpuFacts, MigModeChange, PciAddress
from nodedriver.ports import GpuError, MigModes

type Present = Callable[[Iterable[CardFacts]], tuple[CardFacts, ...]]  # makes cards what they are at this moment

_log = structlog.get_logger()


def with_present_modes(
    modes: MigModes, stubborn: Callable[[], AbstractSet[PciAddress]], cards: Iterable[CardFacts]
) -> tuple[CardFacts, ...]:
    """These cards; those that need a reset for another mode, `stubborn` ones among them, with the mode of now."""
    known = stubborn()
    return tuple(_present(card, modes, known) if isinstance(card, GpuFacts) else card for card in cards)


def _present(card: GpuFacts, modes: MigModes, stubborn: AbstractSet[PciAddress]) -> GpuFacts:
    if card.mig_mode_change is MigModeChange.WHEN_IDLE and card.pci_address in stubborn:
        card = replace(card, mig_mode_change=MigModeChange.NEEDS_RESET)
    if card.mig_mode_change is not MigModeChange.NEEDS_RESET or card.only_vfio:
        return card
    try:
        return replace(card, mig_enabled=modes.use_of(card.pci_address).mig_enabled)
    except GpuError as error:
        _log.warning("MIG mode not read, published as before", error=str(error))
        return card
