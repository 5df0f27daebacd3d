"""Looks at the node's files: kernel, cgroups, NVIDIA's driver, runtime and kubelet configuration, device plugins.

Reads only, below the roots of the settings, and judges nothing. A file that can't be read is "not known".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodedriver.config import Config
from nodedriver.doctor.processes import Process
from nodedriver.doctor.runtimes import containerd_settings, crio_settings, socket_of
from nodedriver.doctor.seen import Kubelet, Runtime, VendorDriver
from nodedriver.driverroot import find_nvml
from nodedriver.vfio.iommu import Roots, modules_missing

_NVIDIA, _DISPLAY = "0x10de", "0x03"
_CONTAINERD_CONFIG, _CRIO_CONFIG = "/etc/containerd/config.toml", "/etc/crio/crio.conf"

type Table = Mapping[str, Any]


class _DeviceManager(msgspec.Struct, rename="pascal"):
    registered_devices: dict[str, list[str] | None] | None = None


class _KubeletCheckpoint(msgspec.Struct, rename="pascal"):
    data: _DeviceManager


def kernel_release(config: Config) -> str:
    """Such as 6.8.0-45-generic; "" where it can't be read."""
    return _text(config.proc_root / "sys/kernel/osrelease").strip()


def cgroup_version(config: Config) -> tuple[bool, bool]:
    """Whether it is cgroup v2, and whether there is a cgroup file system at all."""
    root = config.sys_root / "fs/cgroup"
    return (root / "cgroup.controllers").exists(), root.exists()


def iommu_groups(config: Config) -> int:
    """How many groups the kernel has."""
    return sum(1 for _ in (config.sys_root / "kernel/iommu_groups").glob("*"))


def vfio_modules_missing(config: Config) -> tuple[str, ...]:
    """The modules that are not loaded and without which an NVIDIA card of this node can't be passed through."""
    roots = Roots.of(config)
    return tuple(sorted({module for card in _nvidia_cards(config) for module in modules_missing(roots, card.name)}))


def vendor_driver(config: Config) -> VendorDriver:
    """Version of module and library, and the cards on the bus."""
    module = re.search(r"Kernel Module(?: for \S+)?\s+([\d.]+)", _text(config.proc_root / "driver/nvidia/version"))
    library = find_nvml(config.driver_root)
    version = re.search(r"\.so\.([\d.]+)$", library.resolve().name) if library else None
    return VendorDriver(
        module=module[1] if module else "",
        library=version[1] if version else "",
        cards=len(_nvidia_cards(config)),
        root=str(config.driver_root),
    )


def kubelet_command(config: Config, running: Iterable[Process]) -> Process | None:
    """The kubelet of our kubelet folder; on a machine of several nodes there are others."""
    found = [process for process in running if process.name == "kubelet"]
    roots = [(process.option("--root-dir") or "/var/lib/kubelet") for process in found]
    ours = [process for process, root in zip(found, roots, strict=True) if root == str(config.kubelet_dir)]
    return next(iter(ours or found), None)


def kubelet_settings(config: Config, command: Process | None) -> Table:
    """Its configuration file as a document; {} where there is none that can be read."""
    path = command.option("--config") if command else ""
    return _document(_below(config.host_root, path or "/var/lib/kubelet/config.yaml"))[0]


def kubelet(config: Config, command: Process | None, settings: Table, version: str) -> Kubelet:
    """What is known of the kubelet; gates of the command line come after those of the file."""
    gates = {name: on for name, on in _table(settings, "featureGates").items() if isinstance(on, bool)}
    for pair in command.option("--feature-gates").split(",") if command else ():
        name, _, value = pair.partition("=")
        gates |= {name: value.lower() == "true"} if value else {}
    return Kubelet(
        version=version,
        gates=gates,
        registrar_dir=str(config.registrar_dir),
        registrar_there=config.registrar_dir.is_dir(),
    )


def runtime(config: Config, running: Iterable[Process], settings: Table, version: str) -> Runtime | None:
    """The runtime that the kubelet uses: by its socket where several run. `version` as Node.status tells it."""
    known = version.rpartition("://")[2]
    found = [each for each in running if each.name in ("containerd", "crio")]
    seen = [(_socket(config, each), _seen(config, each, known)) for each in found]
    wanted = str(settings.get("containerRuntimeEndpoint", "")).removeprefix("unix://")
    return next((runtime for socket, runtime in seen if socket == wanted), next((each for _, each in seen), None))


def registered_plugins(config: Config) -> tuple[dict[str, str] | None, tuple[str, ...]]:
    """What the kubelet's device manager has on disk, by resource, and the sockets beside it (DevicePluginPath)."""
    folder = config.device_plugins_dir
    sockets = tuple(sorted(path.name for path in folder.glob("*.sock") if path.name != "kubelet.sock"))
    try:
        content = (folder / "kubelet_internal_checkpoint").read_bytes()
        devices = msgspec.json.decode(content, type=_KubeletCheckpoint).data.registered_devices or {}
    except (OSError, msgspec.MsgspecError):
        return None, sockets
    return {name: str(len(ids or ())) for name, ids in devices.items()}, sockets


def _seen(config: Config, process: Process, version: str) -> Runtime:
    if process.name == "crio":
        path = process.option("--config", "-c") or _CRIO_CONFIG
        document, trouble = _document(_below(config.host_root, path), *_parts(config, f"{path}.d", "*.conf"))
        enabled, dirs = crio_settings(document)
        return Runtime(
            name="CRI-O", version=version, config_file=path, cdi_enabled=enabled, spec_dirs=dirs, trouble=trouble
        )
    path = process.option("--config", "-c") or _CONTAINERD_CONFIG
    document, trouble = _containerd(config, path)
    enabled, dirs = containerd_settings(document)
    return Runtime(
        name="containerd", version=version, config_file=path, cdi_enabled=enabled, spec_dirs=dirs, trouble=trouble
    )


def _socket(config: Config, process: Process) -> str:
    if process.name == "crio":
        return "/var/run/crio/crio.sock"
    return process.option("--address", "-a") or socket_of(
        _containerd(config, process.option("--config", "-c") or _CONTAINERD_CONFIG)[0]
    )


def _containerd(config: Config, path: str) -> tuple[Table, str]:
    """The configuration with what it imports, later files over earlier ones."""
    document, trouble = _document(_below(config.host_root, path))
    imports = [each for each in document.get("imports", ()) if isinstance(each, str)]
    parts = [part for each in imports for part in _parts(config, str(Path(each).parent), Path(each).name)]
    if not parts:
        return document, trouble
    return _document(_below(config.host_root, path), *parts)


def _parts(config: Config, folder: str, pattern: str) -> list[Path]:
    return sorted(_below(config.host_root, folder).glob(pattern))


def _document(*paths: Path) -> tuple[Table, str]:
    """Files over each other, by their ending TOML or YAML (JSON is YAML); {} for what is absent, and what is wrong."""
    merged: dict[str, Any] = {}
    for path in paths:
        try:
            read = msgspec.toml.decode if path.suffix in (".toml", ".conf") else msgspec.yaml.decode
            merged = _over(merged, read(path.read_bytes(), type=dict[str, Any]))
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            return merged, f"{path}: {error}"
    return merged, ""


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = (key for key in below.keys() & above.keys() if isinstance(below[key], dict) and isinstance(above[key], dict))
    return below | above | {key: _over(below[key], above[key]) for key in both}


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _table(document: Table, key: str) -> Table:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def _nvidia_cards(config: Config) -> list[Path]:
    """Their folders in sysfs."""
    return [device for device in (config.sys_root / "bus/pci/devices").glob("*") if _is_card(device)]


def _is_card(device: Path) -> bool:
    return _text(device / "vendor").strip() == _NVIDIA and _text(device / "class").startswith(_DISPLAY)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
