"""The cards with the MIG mode that they are in at this moment: what is published follows it, whoever changed it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeGuard

import structlog

from nodedriver.facts import CardFacts, GpuFacts, MigModeChange
from nodedriver.ports import GpuError, MigModes

_log = structlog.get_logger()


def with_present_modes(cards: Iterable[CardFacts], modes: MigModes) -> tuple[CardFacts, ...]:
    """The same cards; only those are asked whose mode decides what they can serve."""
    return tuple(_with_mode(card, modes) if _is_asked(card) else card for card in cards)


def _is_asked(card: CardFacts) -> TypeGuard[GpuFacts]:
    return isinstance(card, GpuFacts) and card.mig_mode_change is MigModeChange.NEEDS_RESET


def _with_mode(card: GpuFacts, modes: MigModes) -> GpuFacts:
    try:
        return replace(card, mig_enabled=modes.use_of(card.pci_address).mig_enabled)
    except GpuError as error:
        _log.warning("MIG mode not read, published as before", error=str(error))
        return card
