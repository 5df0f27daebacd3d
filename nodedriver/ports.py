"""What the driver's verbs may ask of the outside: GPUs, the MPS supervisor. The doors fulfil these protocols."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from dra.names import ClaimUID
from nodedriver.facts import ComputeMode, DeviceNode, GpuFacts, GpuUUID, MigInstanceFacts, MigPlacement, PciAddress
from nodedriver.gpuconfig import Interval, MpsLimits
from nodedriver.vfioconfig import VfioConfig


class GpuError(Exception):
    """The hardware or NVML said no. The text names the GPU, the call and NVML's reason."""


class ModeRefusedError(GpuError):
    """A card that should change its MIG mode when idle did not: somebody has it, or it asks for a reset."""


class MpsError(Exception):
    """The MPS supervisor, or a control daemon of its, said no or did not answer in time."""


@dataclass(frozen=True, slots=True)
class CardState:
    """What a prepare has to know of a card of NVIDIA's before it changes anything."""

    uuid: GpuUUID
    compute_mode: ComputeMode


class Gpus(Protocol):
    """The GPUs of this node. `nodedriver.nvml` is the real door. All methods raise GpuError, and no others."""

    def facts(self) -> tuple[GpuFacts, ...]:
        """Every GPU as it is now, ordered by PCI address."""

    def persistence(self, gpu: PciAddress) -> bool:
        """Whether persistence mode is on, in which the kernel module keeps the card open."""

    def state_of(self, gpu: PciAddress) -> CardState:
        """One GPU as it is now; the others are not looked at, so that one that hangs is nobody else's."""

    def enter_mig(self, gpu: PciAddress) -> None:
        """Be in MIG mode. A mode change that is not immediate is a GpuError."""

    def leave_mig(self, gpu: PciAddress) -> None:
        """Be out of MIG mode, so that the whole GPU can be used. Where the mode is off already, nothing happens.

        GPU instances on it, or a mode change that is not immediate, are a GpuError. MIG mode may still be on after
        `leave_mig_if_empty`, when something held the GPU at that moment: whoever prepares a whole GPU calls this.
        """

    def leave_mig_if_empty(self, gpu: PciAddress) -> None:
        """The same where no GPU instance is on it and it can switch when idle; else it stays as it is."""

    def create_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts:
        """Make the GPU instance and the compute instance that fills it; the GPU is in MIG mode.

        An instance that already exists at exactly this placement is completed (compute instance) and returned.
        """

    def remove_mig(self, gpu: PciAddress, placement: MigPlacement) -> None:
        """Remove that instance. Absent counts as done."""

    def find_mig(self, gpu: PciAddress, placement: MigPlacement) -> MigInstanceFacts | None:
        """The instance at exactly this placement, also one without a compute instance."""

    def set_compute_mode(self, gpu: PciAddress, mode: ComputeMode) -> None:
        """Set the compute mode of a whole GPU (never of a GPU in MIG mode)."""


class ModeAnswer(StrEnum):
    """What a card says to the wish for another MIG mode (activationStatus of nvmlDeviceSetMigMode)."""

    DONE = "done"
    RESET_REQUIRED = "reset required"
    IN_USE = "in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardUse:
    """The device minor, MIG mode now and as it will be after a reset, the ids of the processes that NVML sees on the
    card, and how many GPU instances are on it.
    """

    minor: int
    mig_enabled: bool
    mig_pending: bool
    processes: tuple[int, ...] = ()
    instances: int = 0


class MigModes(Protocol):
    """MIG mode of cards that need a reset for it. `nodedriver.nvml` is the real door. GpuError, and no others."""

    def use_of(self, gpu: PciAddress) -> CardUse:
        """How the card is used."""

    def wish_mig(self, gpu: PciAddress, *, enabled: bool) -> ModeAnswer:
        """Ask for MIG mode on or off. GpuError while GPU instances are on the card."""

    def let_go(self) -> AbstractContextManager[None]:
        """Have no card open in this process; whoever calls NVML meanwhile waits. Afterwards NVML sees what is there."""


class Resets(Protocol):
    """Resets of whole cards. `nodedriver.resets` is the real door."""

    def reset(self, gpu: PciAddress) -> None:
        """Reset the card; what it does is lost. GpuError where that fails."""


class Vfio(Protocol):
    """Cards that virtual machines get. `nodedriver.vfio` is the real door. GpuError, and no others."""

    def has(self, gpu: PciAddress) -> bool:
        """Whether the card and all that must move with it are bound to VFIO drivers."""

    def bind(self, gpu: PciAddress) -> None:
        """Bind the card, which is out of MIG mode, to the module that passes it through."""

    def give_back(self, gpu: PciAddress, *, persistence: bool) -> None:
        """Bind it to the vendor's driver, in persistence mode if it was before."""

    def nodes(self, gpu: PciAddress, config: VfioConfig) -> tuple[DeviceNode, ...]:
        """What a container needs to open the card, which is bound."""


class TimeSlices(Protocol):
    """How long the processes of a card may run before others do. `nodedriver.timeslices` is the real door."""

    def set(self, gpu: PciAddress, interval: Interval) -> None:
        """Give the whole GPU's processes time slices of that length. GpuError where that fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsShare:
    """A share that a daemon serves: whose it is, its name (the CDI device's, one on the node), and its limits."""

    claim: ClaimUID
    name: str
    limits: MpsLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsDaemonSpec:
    """One control daemon: what it serves and the limits of its clients.

    `device` is the UUID of a GPU or MIG device and names the daemon. By protocol 2 `thread_percentage` and
    `memory_limit` (bytes) are the defaults for all; None leaves MPS's own (100 %, all memory). By protocol 3 each of
    the `shares` has its own; drivers before it name none.
    """

    device: str
    thread_percentage: int | None = None
    memory_limit: int | None = None
    shares: tuple[MpsShare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsShareStatus:
    """A share with a namespace of its own, read back: its pipe directory, and the limits that the server enforces."""

    name: str
    pipe_directory: str
    thread_percentage: float
    memory_limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsDaemonStatus:
    """What the daemon itself answers, read back from it; not what was asked for.

    Clients' containers need the pipe directory, and the folder that is the daemon's /dev/shm as theirs; None where the
    supervisor may not give it one of its own. `shares`: those with a namespace of their own (protocol 3).
    """

    device: str
    pipe_directory: str
    shared_memory: str | None = None
    thread_percentage: float
    memory_limit: int | None
    clients: tuple[int, ...] = field(default=())
    shares: tuple[MpsShareStatus, ...] = ()

    def pipe_of(self, share: str) -> str:
        """The pipe directory for the containers of that share."""
        return next((each.pipe_directory for each in self.shares if each.name == share), self.pipe_directory)


class MpsState(StrEnum):
    """How a control daemon is, by the supervisor's last look."""

    READY = "ready"  # it answers, its server is active, and its limits were read back
    FAULT = "fault"  # a client met a fatal fault: its server takes no new clients until the old ones have gone
    DOWN = "down"  # it or its server ended, or it does not answer; what ended is started again


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsReport:
    """How the daemon of that device is. `reason` says why it is not ready, or not of the protocol that was asked for.

    By protocol 3 its server holds each share to its own limits.
    """

    device: str
    state: MpsState = MpsState.READY
    reason: str = ""
    protocol: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsReports:
    """All daemons that should run. `revision` names this state of things to the next `Mps.watch`."""

    revision: int = 0
    daemons: tuple[MpsReport, ...] = ()


class Mps(Protocol):
    """The MPS supervisor (`nodedriver.mpsd`, a process of its own). All methods raise MpsError, and no others."""

    def ensure(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        """Start the daemon if needed, set its defaults, wait until it answers, read them back. Repeating is safe."""

    def remove(self, device: str) -> None:
        """Stop the daemon of that device and remove its folders. Absent counts as done."""

    def end_clients(self, device: str, claim: ClaimUID) -> None:
        """End the clients of that device's daemon which belong to that claim; those of other claims live on.

        A client belongs to the claim whose mark stands in its environment (`marks`). No daemon, or no such
        client, counts as done.
        """

    def list(self) -> tuple[MpsDaemonStatus, ...]:
        """Every daemon that runs and answers now."""

    def watch(self, revision: int, seconds: float) -> MpsReports:
        """How all daemons are, as soon as that is not the given revision, or when the time is over."""
