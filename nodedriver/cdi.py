"""What a claim's containers get, as a CDI spec: device nodes, the driver's files, the way to an MPS daemon. Pure.

One file per ResourceClaim, one CDI device per allocated device or share in it. Container Device Interface, SPEC.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from dra.names import ClaimUID
from dra.objects import JsonObject
from nodedriver.facts import DeviceNode

# The lowest version that covers what is used here: names that start with a digit, as claim uids do, came with 0.5.0,
# annotations with 0.6.0.
_CDI_VERSION = "0.6.0"
_CLASS = "claim"
_MIB = 2**20
# The default of CUDA programs, so that one that clears its environment still finds the daemon and meets its limits.
MPS_PIPE_DIRECTORY = "/tmp/nvidia-mps"  # noqa: S108 - a path in the container
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - likewise
_FILE_OPTIONS = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_FOLDER_OPTIONS = ("rw", "nosuid", "nodev", "rbind", "rprivate")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the node and where the container has it, as mount options say or else in the usual way."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A program of the node that the runtime calls while it makes the container (OCI runtime specification)."""

    name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEdits:
    """What containers get of NVIDIA's driver: its files, entries of the environment, hooks that link the files."""

    mounts: tuple[Mount, ...]
    env: tuple[str, ...] = ()
    hooks: tuple[Hook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsEdits:
    """How a container reaches its MPS daemon, and the limits of its share, memory in bytes (None: no limit of ours).

    Clients and server share memory through `shared_memory`, a folder of the node; None where there is none.
    """

    pipe_directory: str
    shared_memory: str | None = None
    thread_percentage: int | None = None
    memory_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiDevice:
    """One allocated device or share: its CDI name (see `device_name`), its own nodes and files."""

    name: str
    nodes: tuple[DeviceNode, ...]
    mps: MpsEdits | None = None
    files: tuple[Mount, ...] = ()


def device_name(uid: ClaimUID, device: str, device_request: str) -> str:
    """The CDI name of a claim's device; two shares of one device in a claim are of two device requests."""
    return f"{uid}-{device}-{device_request}"


def qualified_name(driver_name: str, name: str) -> str:
    """What the kubelet hands to the container runtime: vendor, class and device."""
    return f"{driver_name}/{_CLASS}={name}"


def file_name(driver_name: str, uid: ClaimUID) -> str:
    """The name of the claim's spec file."""
    return f"{driver_name}-{_CLASS}-{uid}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiCommon:
    """What every container with a device of the claim gets, a note that the file carries along for its writer,
    and the entry of the environment that marks the claim's processes.
    """

    control_nodes: Iterable[DeviceNode]
    driver: DriverEdits = DriverEdits(mounts=())
    note: str = ""
    mark: str = ""


def spec(driver_name: str, devices: Sequence[CdiDevice], common: CdiCommon) -> bytes:
    """The text of a claim's spec file. NVIDIA_VISIBLE_DEVICES=void keeps NVIDIA's own runtime hook out of it."""
    driver = common.driver
    content = {
        "cdiVersion": _CDI_VERSION,
        "kind": f"{driver_name}/{_CLASS}",
        "annotations": {_note_key(driver_name): common.note},
        "devices": [{"name": device.name, "containerEdits": _device_edits(device)} for device in devices],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void", *([common.mark] if common.mark else []), *driver.env],
            "deviceNodes": [_node(node) for node in common.control_nodes],
            "mounts": [_mount(mount, mount.options or _FILE_OPTIONS) for mount in driver.mounts],
            **({"hooks": [_hook(hook) for hook in driver.hooks]} if driver.hooks else {}),
        },
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def note_of(driver_name: str, content: bytes) -> str | None:
    """The note of a spec file of ours; None where it is not such a file, or was not written whole."""
    try:
        found = _NOTED.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found.annotations.get(_note_key(driver_name)) if found.kind == f"{driver_name}/{_CLASS}" else None


class _Noted(msgspec.Struct, frozen=True):
    kind: str
    annotations: dict[str, str] = {}


_NOTED = msgspec.json.Decoder(_Noted)


def _note_key(driver_name: str) -> str:
    return f"{driver_name}/prepared"


def _device_edits(device: CdiDevice) -> JsonObject:
    edits: JsonObject = {"deviceNodes": [_node(node) for node in device.nodes]}
    mounts = [_mount(file, _FILE_OPTIONS) for file in device.files]
    if device.mps is not None:
        edits["env"] = _mps_environment(device.mps)
        mounts += _mps_mounts(device.mps)
    return edits | {"mounts": mounts} if mounts else edits


def _mps_environment(mps: MpsEdits) -> list[str]:
    """NVIDIA MPS documentation, "Environment Variables": a client can only tighten what the server has.

    The daemon serves one device, so its ordinal is 0.
    """
    environment = [f"CUDA_MPS_PIPE_DIRECTORY={MPS_PIPE_DIRECTORY}"]
    if mps.thread_percentage is not None:
        environment.append(f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={mps.thread_percentage}")
    if mps.memory_limit is not None:
        environment.append(f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0={mps.memory_limit // _MIB}M")
    return environment


def _mps_mounts(mps: MpsEdits) -> list[JsonObject]:
    mounts = [Mount(mps.pipe_directory, MPS_PIPE_DIRECTORY)]
    if mps.shared_memory is not None:
        mounts.append(Mount(mps.shared_memory, _SHARED_MEMORY))
    return [_mount(mount, _FOLDER_OPTIONS) for mount in mounts]


def _node(node: DeviceNode) -> JsonObject:
    """With type and numbers a runtime need not look at the host's node."""
    return {"path": node.path, "type": "c", "major": node.major, "minor": node.minor, "permissions": "rw"}


def _hook(hook: Hook) -> JsonObject:
    return {"hookName": hook.name, "path": hook.path, "args": hook.args, "env": hook.env}


def _mount(mount: Mount, options: tuple[str, ...]) -> JsonObject:
    return {"hostPath": mount.host_path, "containerPath": mount.container_path, "options": options}
