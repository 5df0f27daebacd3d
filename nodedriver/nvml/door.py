"""What the driver holds of NVML: one session for the life of the process. Fulfils `nodedriver.ports.Gpus`.

What is asked of a card is asked in that card's own thread, one thing after another, with a deadline (`patience`);
between processes the caller's file locks keep the order. Cards are looked up anew for each question, since a reset,
and another driver for a card, end the session and all handles with it.
"""

from __future__ import annotations

import ctypes
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pynvml
import structlog

from nodedriver import sysfs
from nodedriver.facts import ComputeMode, GpuFacts, GpuProcess, MigInstanceFacts, MigPlacement, PciAddress
from nodedriver.health.ailments import CardLook
from nodedriver.nvml import cards, links, mig
from nodedriver.nvml.calls import ABSENT, Card, ProfileBook, ask
from nodedriver.nvml.events import EventSet, look
from nodedriver.nvml.patience import SECONDS, Patience
from nodedriver.nvml.processes import processes
from nodedriver.nvml.session import SESSION
from nodedriver.ports import CardState, CardUse, GpuError, ModeAnswer

log = structlog.get_logger(__name__)


class Nvml:
    """The GPUs of this node. `is_open` is false where none of them is NVIDIA's: then NVML need not be there."""

    def __init__(
        self,
        *,
        library: Path | None,
        sys_root: Path,
        patience: float = SECONDS,
        needed: bool = True,
        fill: Callable[[GpuFacts], GpuFacts] = lambda card: card,
    ) -> None:
        """Load that library unless one stands under pynvml already (None: by its name), and begin the session.

        A node without GPUs is no error; one without the driver is, where it is `needed`. `patience`: the most seconds
        to wait for a card. `fill` adds what is known of a card that does not say it (`placements`).
        """
        # It would show MPS locality domains instead of GPUs (NVML 13.5).
        os.environ.pop("NVML_MPS_DEVICE_ENUMERATION", None)
        if needed and library and pynvml.nvmlLib is None:
            pynvml.nvmlLib = ctypes.CDLL(str(library))
        self._sys_root = sys_root
        self._fill = fill
        self._links: dict[PciAddress, frozenset[PciAddress]] = {}
        self._books: defaultdict[PciAddress, ProfileBook] = defaultdict(ProfileBook)
        self._patience = Patience(patience)
        self.is_open = needed
        if needed:
            self._patience.ask("NVML", lambda: ask("NVML", pynvml.nvmlInitWithFlags, pynvml.NVML_INIT_FLAG_NO_GPUS))

    def close(self) -> None:
        """End the session. Where a card hangs it may not end; it does with the process."""
        try:
            if self.is_open:
                self._patience.ask("NVML", lambda: ask("NVML", pynvml.nvmlShutdown))
        except GpuError as error:
            log.warning("NVML session not ended", error=str(error))
        self._patience.close()

    def facts(self) -> tuple[GpuFacts, ...]:
        """Every GPU that answers, by PCI address. One that does not is left out and logged: its neighbours serve on."""
        if not self.is_open:
            return ()
        found = []
        count: int = self._patience.ask("NVML", lambda: ask("NVML", pynvml.nvmlDeviceGetCount))
        for index in range(count):
            try:
                found.append(self.facts_of(self._patience.ask(f"GPU {index}", partial(_address_at, index))))
            except GpuError as error:
                log.warning("GPU left out", index=index, error=str(error))
        cliques = links.cliques({gpu.pci_address: self._links_of(gpu.pci_address) for gpu in found})
        return tuple(
            _in_clique(gpu, cliques.get(gpu.pci_address)) for gpu in sorted(found, key=lambda gpu: gpu.pci_address)
        )

    def _links_of(self, gpu: PciAddress) -> frozenset[PciAddress]:
        """Read once a card; without an answer it is in no clique until the next look."""
        try:
            self._links[gpu] = self._links.get(gpu) or self._on(gpu, links.far_ends)
        except GpuError as error:
            log.warning("NVLink not read", error=str(error))
        return self._links.get(gpu, frozenset())

    def facts_of(self, gpu: PciAddress) -> GpuFacts:
        """The GPU as it is now."""
        return self._fill(self._on(gpu, lambda card: cards.read(card, self._sys_root)))

    def present(self, known: GpuFacts) -> GpuFacts:
        """The same GPU, with its MIG mode and instances of now: a few calls, where `facts_of` has a hundred."""
        return self._on(known.pci_address, lambda card: mig.present(card, known))

    def state_of(self, gpu: PciAddress) -> CardState:
        """What of it a prepare has to know (see `Gpus`)."""
        return self._on(gpu, cards.state)

    def look(self, gpu: PciAddress) -> CardLook | None:
        """Whether the card answers, what it asks for, and which instances are on it; None of one that is away."""
        try:
            return None if self.is_away(gpu) else self._on(gpu, look)
        except GpuError:
            return None if self.is_away(gpu) else CardLook(answers=False)

    def is_away(self, gpu: PciAddress) -> bool:
        """Whether another driver has it, or none, so that NVML can't see it. One that fell off the bus is lost."""
        return sysfs.driver(self._sys_root, gpu) not in (None, sysfs.NVIDIA)

    def events(self, gpus: Iterable[PciAddress]) -> EventSet:
        """Begin to hear of the critical errors of these cards."""
        return EventSet(gpus, self._on, self.is_away)

    def processes(self, gpu: PciAddress) -> tuple[GpuProcess, ...]:
        """Compute and graphics processes on the card, and clients of MPS. GpuError where it does not answer."""
        return self._on(gpu, lambda card: tuple(processes(card)))

    def enter_mig(self, gpu: PciAddress) -> None:
        """Be in MIG mode (see `Gpus`)."""
        self._on(gpu, mig.enter)

    def create_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts:
        """Make the instance, or complete the one that is there (see `Gpus`)."""
        return self._on(gpu, lambda card: mig.ensure(card, placement))

    def remove_mig(self, gpu: PciAddress, placement: MigPlacement) -> None:
        """Remove the instance (see `Gpus`)."""
        self._on(gpu, lambda card: mig.remove(card, placement))

    def find_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts | None:
        """The instance at exactly this placement, or None."""
        return self._on(gpu, lambda card: mig.find(card, placement))

    def leave_mig_if_empty(self, gpu: PciAddress) -> None:
        """Leave MIG mode where nothing is in its way (see `Gpus`)."""
        self._on(gpu, mig.leave_if_empty)

    def leave_mig(self, gpu: PciAddress) -> None:
        """Leave MIG mode (see `Gpus`)."""
        self._on(gpu, mig.leave)

    def set_compute_mode(self, gpu: PciAddress, mode: ComputeMode) -> None:
        """Have the whole GPU in that compute mode."""
        self._on(gpu, lambda card: cards.set_compute_mode(card, mode))

    def persistence(self, gpu: PciAddress) -> bool:
        """Whether persistence mode is on; a card without it has it off."""
        ask_mode = pynvml.nvmlDeviceGetPersistenceMode
        return bool(self._on(gpu, lambda card: card.ask_unless(ABSENT, ask_mode, card.handle)))

    def set_persistence(self, gpu: PciAddress, *, on: bool) -> None:
        """Switch persistence mode; a card without it has nothing to switch."""
        switch = pynvml.nvmlDeviceSetPersistenceMode
        self._on(gpu, lambda card: card.ask_unless(ABSENT, switch, card.handle, int(on)))

    def use_of(self, gpu: PciAddress) -> CardUse:
        """How the card is used (see `MigModes`)."""
        return self._on(gpu, mig.use_of)

    def wish_mig(self, gpu: PciAddress, *, enabled: bool) -> ModeAnswer:
        """Ask for another mode, which may stay pending (see `MigModes`)."""
        return self._on(gpu, lambda card: mig.wish_mode(card, enabled=enabled))

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Have no card open meanwhile (see `MigModes`)."""
        try:
            # In a thread of its own: that of other questions may wait for the session.
            with SESSION.away(partial(self._patience.ask, "NVML session")):
                yield
        except pynvml.NVMLError as error:
            raise GpuError(f"NVML did not come back: {error}. Start the node driver again.") from error

    def _on[T](self, gpu: PciAddress, work: Callable[[Card], T]) -> T:
        """Do it in the thread of that card, which is looked up first, and in one session."""

        def in_one_session() -> T:
            with SESSION.joined():
                return work(cards.card_by_address(gpu, self._books[gpu]))

        with SESSION.used():  # a session that is away is waited for before the deadline counts
            return self._patience.ask(f"GPU {gpu}", in_one_session)


def _address_at(index: int) -> PciAddress:
    """Indexes move when a card leaves; only the PCI address stays."""
    with SESSION.used():
        return cards.card_at(index).address


def _in_clique(gpu: GpuFacts, clique: PciAddress | None) -> GpuFacts:
    return replace(gpu, surroundings=replace(gpu.surroundings, nvlink_clique=clique))
