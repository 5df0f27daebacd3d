"""What the driver holds of NVML: one session for the life of the process. Fulfils `nodedriver.ports.Gpus`.

NVML may be called from many threads; what changes a card is serialised per card here, and between processes by the
caller's file locks. Cards are looked up anew for each call, since a reset ends the session and all handles with it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pynvml
import structlog

from nodedriver.facts import ComputeMode, GpuFacts, MigInstanceFacts, MigModeChange, MigPlacement, PciAddress
from nodedriver.nvml import cards, mig
from nodedriver.nvml.calls import NvmlError, ask
from nodedriver.nvml.session import SESSION, in_session
from nodedriver.ports import CardUse, GpuError, ModeAnswer

log = structlog.get_logger(__name__)


class Nvml:
    """The GPUs of this node."""

    def __init__(self, *, library: Path | None, sys_root: Path) -> None:
        """Load that library unless one stands under pynvml already (None: by its name), and begin the session.

        A node without GPUs is no error; one without the driver is.
        """
        # It would show MPS locality domains instead of GPUs (NVML 13.5).
        os.environ.pop("NVML_MPS_DEVICE_ENUMERATION", None)
        if library and pynvml.nvmlLib is None:
            pynvml.nvmlLib = ctypes.CDLL(str(library))
        self._sys_root = sys_root
        self._locks: defaultdict[PciAddress, threading.Lock] = defaultdict(threading.Lock)
        ask("NVML", pynvml.nvmlInitWithFlags, pynvml.NVML_INIT_FLAG_NO_GPUS)

    def close(self) -> None:
        """End the session."""
        ask("NVML", pynvml.nvmlShutdown)

    @in_session
    def facts(self) -> tuple[GpuFacts, ...]:
        """Every GPU that answers, by PCI address. One that does not is left out and logged: its neighbours serve on."""
        found = []
        for index in range(ask("NVML", pynvml.nvmlDeviceGetCount)):
            try:
                found.append(cards.read(cards.card_at(index), self._sys_root))
            except NvmlError:
                log.exception("GPU left out", index=index)
        return tuple(sorted(found, key=lambda gpu: gpu.pci_address))

    @in_session
    def enter_mig(self, gpu: PciAddress) -> None:
        """Be in MIG mode (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            if not mig.is_enabled(card):
                mig.set_mode(card, enabled=True)

    @in_session
    def create_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts:
        """Make the instance, or complete the one that is there (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            found = mig.instance_at(card, placement)
            instance = mig.create(card, placement) if found is None else found
            mig.complete(card, instance)
            return mig.instance_facts(card, instance)

    @in_session
    def remove_mig(self, gpu: PciAddress, placement: MigPlacement) -> None:
        """Remove the instance (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            instance = mig.instance_at(card, placement)
            if instance is not None:
                mig.destroy(card, instance)

    @in_session
    def find_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts | None:
        """The instance at exactly this placement, or None."""
        card = cards.card_by_address(gpu)
        instance = mig.instance_at(card, placement)
        return mig.instance_facts(card, instance) if instance is not None else None

    @in_session
    def leave_mig_if_empty(self, gpu: PciAddress) -> None:
        """Leave MIG mode where nothing is in its way (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            if not mig.is_enabled(card) or mig.mode_change(card) is not MigModeChange.WHEN_IDLE:
                return
            if next(mig.instances(card), None) is None:
                mig.set_mode(card, enabled=False)

    @in_session
    def leave_mig(self, gpu: PciAddress) -> None:
        """Leave MIG mode (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            if not mig.is_enabled(card):
                return
            count = sum(1 for _ in mig.instances(card))
            if count:
                raise GpuError(
                    f"GPU {gpu} can't be used whole: {count} GPU instances are on it. If nobody needs them, remove "
                    f"them with nvidia-smi mig -i {gpu} -dci and nvidia-smi mig -i {gpu} -dgi."
                )
            mig.set_mode(card, enabled=False)

    @in_session
    def set_compute_mode(self, gpu: PciAddress, mode: ComputeMode) -> None:
        """Set the compute mode of a whole GPU."""
        card = cards.card_by_address(gpu)
        card.ask(pynvml.nvmlDeviceSetComputeMode, card.handle, int(mode))

    @in_session
    def use_of(self, gpu: PciAddress) -> CardUse:
        """How the card is used (see `MigModes`)."""
        return mig.use_of(cards.card_by_address(gpu))

    @in_session
    def wish_mig(self, gpu: PciAddress, *, enabled: bool) -> ModeAnswer:
        """Ask for another mode, which may stay pending (see `MigModes`)."""
        with self._locks[gpu]:
            return mig.wish_mode(cards.card_by_address(gpu), enabled=enabled)

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Have no card open meanwhile (see `MigModes`)."""
        try:
            with SESSION.away():
                yield
        except pynvml.NVMLError as error:
            raise GpuError(f"NVML did not come back after a reset: {error}. Start the node driver again.") from error
