"""Looks now and then which prepared devices a process runs on, and remembers when it last saw one.

Reads NVML's process lists and the processes' environments; writes nothing. The time outlives a restart in the claim's
status (`devicestatus`). A card that does not answer is left out of a look: nobody is called idle for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog

from dra.names import ClaimUID
from nodedriver.facts import GpuProcess, PciAddress
from nodedriver.holding import Checkpoint, ClaimState
from nodedriver.marks import marked_with
from nodedriver.ports import GpuError
from nodedriver.procfs import environment_of
from nodedriver.sightings import Sight, Spot, look_at, looked

_log = structlog.get_logger()

type Processes = Callable[[PciAddress], Sequence[GpuProcess]]  # GpuError where the card does not answer


class LastSeen:
    """When a process was last seen on each prepared device. `of` may be asked from any thread."""

    def __init__(self, proc_root: Path, read: Callable[[], Checkpoint], processes: Processes) -> None:
        self._proc_root = proc_root
        self._read = read
        self._processes = processes
        self._sights: dict[Spot, Sight] = {}

    def of(self, uid: ClaimUID, cdi_device_id: str) -> Sight | None:
        """What is known of a claim's device; None before the first process was seen."""
        return self._sights.get((uid, cdi_device_id))

    def look(self) -> None:
        """Look once at the cards that claims hold. CheckpointError as at reading."""
        claims = [each for each in self._read().claims.values() if each.state is ClaimState.COMPLETED]
        answers = {gpu: self._on(gpu) for gpu in {device.gpu for claim in claims for device in claim.devices}}
        look = look_at(claims, {gpu: found for gpu, found in answers.items() if found is not None}, self._marks)
        held = {(claim.uid, device.cdi_device_id) for claim in claims for device in claim.devices}
        sights = looked(self._sights, look, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        self._sights = {spot: sight for spot, sight in sights.items() if spot in held}

    def _on(self, gpu: PciAddress) -> Sequence[GpuProcess] | None:
        try:
            return self._processes(gpu)
        except GpuError as error:
            _log.debug("processes of a card not seen", gpu=gpu, error=str(error))
            return None

    def _marks(self, pid: int) -> frozenset[ClaimUID]:
        return marked_with(environment_of(self._proc_root, pid))
