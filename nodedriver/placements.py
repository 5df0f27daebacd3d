"""MIG profiles and placements that a driver tells in MIG mode only: learnt once on a free card, kept in a file.

They are the same for all cards of a model under one driver, so what one card told holds for the others. A card that is
held is never touched: until something is known of its model it is published without MIG devices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from nodedriver.facts import GpuFacts, MigModeChange, MigProfileFacts, PciAddress
from nodedriver.files import write_atomically
from nodedriver.ports import GpuError

_log = structlog.get_logger()
VERSION = 1


class Asked(Protocol):
    """What is asked of the GPUs. `nodedriver.nvml` is the real door; all methods raise GpuError, and no others."""

    def enter_mig(self, gpu: PciAddress) -> None:
        """Be in MIG mode."""

    def leave_mig(self, gpu: PciAddress) -> None:
        """Be out of it."""

    def facts_of(self, gpu: PciAddress) -> GpuFacts:
        """The GPU as it is now."""


type Locking = Callable[[Collection[PciAddress]], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """What one model tells under one driver. Memory in bytes: some products come with several sizes."""

    product: str
    memory: int
    driver_version: str
    profiles: tuple[MigProfileFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cache:
    version: int = VERSION
    models: tuple[_Model, ...] = ()


class Placements:
    """What is known of models. The file is read once, and written when something was learnt."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {_key(model.product, model.memory, model.driver_version): model for model in _read(path)}

    def fill(self, card: GpuFacts) -> GpuFacts:
        """The card with what its model can do, where it does not say so itself and it is known."""
        model = self._known.get(_key_of(card))
        return replace(card, profiles=model.profiles) if model and _is_silent(card) else card

    def learn(self, gpus: Asked, cards: Collection[GpuFacts], held: Collection[PciAddress], locking: Locking) -> bool:
        """Ask a free card of each model that nothing is known of, in MIG mode for a moment; whether that told more."""
        for card in cards:
            if self._needs_asking(card, held):
                self._ask(gpus, card, locking)
        return any(_is_silent(card) and not _is_silent(self.fill(card)) for card in cards)

    def _needs_asking(self, card: GpuFacts, held: Collection[PciAddress]) -> bool:
        silent = _is_silent(card) and _key_of(card) not in self._known
        return silent and card.mig_mode_change is MigModeChange.WHEN_IDLE and card.pci_address not in held

    def _ask(self, gpus: Asked, card: GpuFacts, locking: Locking) -> None:
        gpu = card.pci_address
        try:
            with locking([gpu]):
                gpus.enter_mig(gpu)
                try:
                    asked = gpus.facts_of(gpu)
                finally:
                    gpus.leave_mig(gpu)
        except GpuError as error:
            _log.warning("MIG placements not learnt", gpu=gpu, error=str(error))
            return
        if not _is_silent(asked):
            self._keep(asked)

    def _keep(self, card: GpuFacts) -> None:
        """Models of other driver versions are left out: that driver is gone."""
        model = _Model(
            product=card.product_name, memory=card.memory, driver_version=card.driver_version, profiles=card.profiles
        )
        self._known[_key_of(card)] = model
        models = tuple(each for each in self._known.values() if each.driver_version == card.driver_version)
        _log.info("MIG placements learnt", gpu=card.pci_address, model=card.product_name, profiles=len(card.profiles))
        write_atomically(self._path, msgspec.json.format(msgspec.json.encode(_Cache(models=models)), indent=1) + b"\n")


def _is_silent(card: GpuFacts) -> bool:
    """Whether it has MIG mode and says nothing of its placements."""
    possible = card.mig_mode_change is not MigModeChange.IMPOSSIBLE
    return possible and not any(profile.placements for profile in card.profiles)


def _key_of(card: GpuFacts) -> tuple[str, int, str]:
    return _key(card.product_name, card.memory, card.driver_version)


def _key(product: str, memory: int, driver_version: str) -> tuple[str, int, str]:
    return product, memory, driver_version


def _read(path: Path) -> tuple[_Model, ...]:
    """What the file holds; one that can't be read is kept under a new name, and all is learnt anew."""
    try:
        cache = msgspec.json.decode(path.read_bytes(), type=_Cache)
    except FileNotFoundError:
        return ()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return _set_aside(path, str(error))
    if cache.version != VERSION:
        return _set_aside(path, f"it has version {cache.version}, and this driver reads version {VERSION}")
    return cache.models


def _set_aside(path: Path, reason: str) -> tuple[_Model, ...]:
    aside = path.with_name(f"{path.name}.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    path.rename(aside)
    _log.warning("unreadable cache of MIG placements set aside", kept_as=str(aside), reason=reason)
    return ()
