"""What the driver holds of NVML: one session for the life of the process. Fulfils `nodedriver.ports.Gpus`.

NVML may be called from many threads; what changes a card is serialised per card here, and between processes by the
caller's file locks. Cards are looked up anew for each call.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import defaultdict
from pathlib import Path

import pynvml
import structlog

from nodedriver.facts import ComputeMode, GpuFacts, MigInstanceFacts, MigModeChange, MigPlacement, PciAddress
from nodedriver.nvml import cards, mig
from nodedriver.nvml.calls import NvmlError, ask
from nodedriver.ports import GpuError

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

    def facts(self) -> tuple[GpuFacts, ...]:
        """Every GPU that answers, by PCI address. One that does not is left out and logged: its neighbours serve on."""
        found = []
        for index in range(ask("NVML", pynvml.nvmlDeviceGetCount)):
            try:
                found.append(cards.read(cards.card_at(index), self._sys_root))
            except NvmlError:
                log.exception("GPU left out", index=index)
        return tuple(sorted(found, key=lambda gpu: gpu.pci_address))

    def enter_mig(self, gpu: PciAddress) -> None:
        """Be in MIG mode (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            if not mig.is_enabled(card):
                mig.set_mode(card, enabled=True)

    def create_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts:
        """Make the instance, or complete the one that is there (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            found = mig.instance_at(card, placement)
            instance = mig.create(card, placement) if found is None else found
            mig.complete(card, instance)
            return mig.instance_facts(card, instance)

    def remove_mig(self, gpu: PciAddress, placement: MigPlacement) -> None:
        """Remove the instance (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            instance = mig.instance_at(card, placement)
            if instance is not None:
                mig.destroy(card, instance)

    def find_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts | None:
        """The instance at exactly this placement, or None."""
        card = cards.card_by_address(gpu)
        instance = mig.instance_at(card, placement)
        return mig.instance_facts(card, instance) if instance is not None else None

    def leave_mig_if_empty(self, gpu: PciAddress) -> None:
        """Leave MIG mode where nothing is in its way (see `Gpus`)."""
        with self._locks[gpu]:
            card = cards.card_by_address(gpu)
            if not mig.is_enabled(card) or mig.mode_change(card) is not MigModeChange.WHEN_IDLE:
                return
            if next(mig.instances(card), None) is None:
                mig.set_mode(card, enabled=False)

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

    def set_compute_mode(self, gpu: PciAddress, mode: ComputeMode) -> None:
        """Set the compute mode of a whole GPU."""
        card = cards.card_by_address(gpu)
        card.ask(pynvml.nvmlDeviceSetComputeMode, card.handle, int(mode))
