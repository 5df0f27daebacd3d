"""The hardware as values: GPUs, GPU instances, compute instances, processes and MPS daemons.

Frozen and free of rules and files: `rules.py` makes new values from old ones, `state.py` keeps them in a file. Memory
is in bytes unless a name says MiB. Terms are NVML's (nvml.h 13.5) and those of the MIG User Guide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

MIB = 1024 * 1024


class NvmlReturn(IntEnum):
    """nvmlReturn_t: the codes that the stand-in answers."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    TIMEOUT = 10
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    IN_USE = 19
    INSUFFICIENT_RESOURCES = 23
    ARGUMENT_VERSION_MISMATCH = 25


class ComputeMode(IntEnum):
    """nvmlComputeMode_t. Value 1 (exclusive thread) was removed by NVIDIA."""

    DEFAULT = 0
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class ProcessKind(StrEnum):
    """What a process is on the card: types C, the MPS server, M+C and G of nvidia-smi."""

    COMPUTE = "compute"
    MPS_SERVER = "mps-server"
    MPS_CLIENT = "mps-client"
    GRAPHICS = "graphics"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeInstance:
    """A compute instance: `start` and `size` in compute slices of its GPU instance. `created` is never reused."""

    id: int
    profile_id: int
    start: int
    size: int
    uuid: str
    created: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInstance:
    """A GPU instance: `start` and `size` in memory slices of the card. `created` is never reused."""

    id: int
    profile_id: int
    start: int
    size: int
    memory_mib: int
    created: int
    compute_instances: tuple[ComputeInstance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process with a context on the card. `started` is its start time in clock ticks (proc(5), stat field 22).

    `context` tells several contexts of one process apart. `server_pid` is set for MPS clients; the limits are those
    that the MPS server enforces for this client. `namespace` of MPS version 3, by which the client came in.
    """

    pid: int
    started: int
    context: int = 0
    uid: int
    kind: ProcessKind
    memory_bytes: int = 0
    gpu_instance: int | None = None
    compute_instance: int | None = None
    server_pid: int | None = None
    namespace: str = ""
    active_thread_percentage: float | None = None
    memory_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One card. `compute_capability` is major, minor; `timeslice` is 0 default, 1 short, 2 medium, 3 long.

    `nvlink` is the PCI address at the far end of each link.
    `recovery_action` is nvmlGpuRecoveryAction (0: none); a `lost` card has fallen off the bus and answers nothing; one
    that `resets_to_switch` its MIG mode asks for a reset although its model does not. `profiles_need_mig_mode`: its
    driver refuses to tell of profiles and placements while MIG mode is off.
    `driver` is who has it in sysfs, "" for nobody: NVML sees those of NVIDIA's driver only. `renewed` counts changes of
    MIG mode and resets: handles of before are stale (nvml.h, nvmlDeviceSetMigMode).
    """

    pci_address: str
    uuid: str
    index: int
    minor: int
    serial: str
    product: str
    architecture: int
    compute_capability: tuple[int, int]
    total_memory_mib: int
    reserved_memory_mib: int
    pci_device_id: int
    pcie_root: str
    numa_node: int
    nvlink: tuple[str, ...] = ()
    mig_current: bool = False
    mig_pending: bool = False
    compute_mode: ComputeMode = ComputeMode.DEFAULT
    persistence: bool = True
    timeslice: int = 0
    recovery_action: int = 0
    lost: bool = False
    resets_to_switch: bool = False
    profiles_need_mig_mode: bool = False
    driver: str = "nvidia"
    renewed: int = 0
    created: int = 0
    gpu_instances: tuple[GpuInstance, ...] = ()
    processes: tuple[Process, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsNamespace:
    """A namespace of a server (MPS version 3): the limits of its clients, where they were set; memory in bytes."""

    name: str
    active_thread_percentage: float | None = None
    memory_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsServer:
    """One MPS server. Limits are per device UUID, in bytes; they were the daemon's defaults when it started.

    `faulty`: a client met a fatal fault; the server takes no new clients until the old ones have gone. Under version 3
    a server has a name, and its limits are those of its namespaces.
    """

    pid: int
    uid: int
    active_thread_percentage: float
    memory_limits: dict[str, int] = field(default_factory=dict)
    faulty: bool = False
    name: str = ""
    namespaces: tuple[MpsNamespace, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsDaemon:
    """One nvidia-cuda-mps-control daemon. `devices` are the UUIDs it was given in CUDA_VISIBLE_DEVICES, in order.

    `protocol` is 2, the classic interface, or 3.
    """

    pid: int
    started: int
    pipe_directory: str
    multi_user: bool
    protocol: int = 2
    devices: tuple[str, ...]
    default_active_thread_percentage: float = 100.0
    default_memory_limits: dict[str, int] = field(default_factory=dict)
    servers: tuple[MpsServer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that the driver tells every event set that asked. `number` counts all events of the machine.

    `type` is one of nvmlEventType*, `data` the XID; instances are ids, None when it concerns the whole card.
    """

    number: int
    pci_address: str
    type: int
    data: int = 0
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A fault for future calls of one NVML function: answer `code` instead of acting, or act, or wait before or after.
    The reset of nvidia-smi (`smi.RESET`) counts as one.

    `pci_address`: for calls about that card, "" for any call. `times`: how often, 0 until it is taken away. `hang`: the
    call does not come back before the row is taken away, and acts then. `skip`: so many calls pass before. `met` counts
    the calls that met a row that stays.
    """

    function: str
    code: int = 0
    before_ms: int = 0
    after_ms: int = 0
    hang: bool = False
    skip: int = 0
    pci_address: str = ""
    times: int = 1
    met: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Silicon:
    """All that a machine's GPUs and driver know. `cuda_version` is major x 1000 + minor x 10, as NVML gives it.

    `missing` are the functions of NVML that this driver is too old for. `sysfs_read`: how many bytes of each of sysfs'
    `bind` and `unbind` were acted on.
    """

    driver_version: str
    cuda_version: int
    missing: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...]
    mps_daemons: tuple[MpsDaemon, ...] = ()
    injections: tuple[Injection, ...] = ()
    events: tuple[Event, ...] = ()
    sysfs_read: dict[str, int] = field(default_factory=dict)
