"""The CDI files, one a resource claim: gathers what `cdi` needs to know, writes the file, removes it. So with the
files about devices that it mounts.

Each file carries the claim's entry of the checkpoint, so that a lost checkpoint can be made from the files. Device
numbers are read anew for each file, since a MIG instance has them only once it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import msgspec
import structlog

from dra.names import ClaimUID
from nodedriver.cdi import (
    CdiCommon,
    CdiDevice,
    DriverEdits,
    Mount,
    MpsEdits,
    device_name,
    file_name,
    note_of,
    qualified_name,
    spec,
)
from nodedriver.config import Config
from nodedriver.devchar import link_nodes
from nodedriver.driverroot import container_files
from nodedriver.facts import DeviceNode, Vendor
from nodedriver.files import remove_if_present, write_atomically
from nodedriver.gpuconfig import MpsLimits
from nodedriver.holding import ClaimState, PreparedClaim, PreparedDevice
from nodedriver.marks import mark
from nodedriver.metadatafiles import MetadataFiles
from nodedriver.ports import GpuError, Gpus, MpsDaemonStatus, Vfio
from nodedriver.procfs import control_nodes, gpu_minor, gpu_node, mig_nodes
from nodedriver.vendors import plain_nodes

_log = structlog.get_logger()
_NOTE = msgspec.json.Decoder(PreparedClaim)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePaths:
    """Where things lie: the CDI folder, its /proc, /sys and /dev, NVIDIA's driver as we and as the node see it."""

    cdi_dir: Path
    proc_root: Path
    sys_root: Path
    dev_root: Path
    driver_root: Path
    host_driver_root: Path

    @classmethod
    def of(cls, config: Config) -> NodePaths:
        """As the settings say."""
        return cls(
            cdi_dir=config.cdi_dir,
            proc_root=config.proc_root,
            sys_root=config.sys_root,
            dev_root=config.dev_root,
            driver_root=config.driver_root,
            host_driver_root=config.host_driver_root,
        )


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """What containers have mounted: files about devices, and NVIDIA's driver by nvidia-ctk (None: as we find it)."""

    metadata: MetadataFiles
    driver: DriverEdits | None = None


class ClaimSpecs:
    """The files of one driver. OSError where the disk says no."""

    def __init__(
        self,
        driver_name: str,
        paths: NodePaths,
        gpus: Gpus,
        vfio: Vfio,
        files: ContainerFiles,
    ) -> None:
        self._driver_name = driver_name
        self._paths = paths
        self._gpus = gpus
        self._vfio = vfio
        self._files = files
        paths.cdi_dir.mkdir(parents=True, exist_ok=True)

    def device_id(self, uid: ClaimUID, device: str, device_request: str) -> str:
        """The qualified CDI name that the kubelet hands to the container runtime."""
        return qualified_name(self._driver_name, device_name(uid, device, device_request))

    def write(self, claim: PreparedClaim, daemons: Mapping[str, MpsDaemonStatus]) -> None:
        """Make the file say what this claim's containers get; `daemons` are those of its devices, by device UUID.

        GpuError when the kernel modules do not tell a device's numbers.
        """
        # Files of the containers of a device request come with its first device: they are the same for all.
        files = self._files.metadata.write(claim)
        devices = [
            CdiDevice(
                name=device_name(claim.uid, device.device, device.device_request),
                nodes=self._nodes(device),
                mps=_mps(device.mps, daemons[device.uuid], device.cdi_device_id) if device.mps else None,
                files=(files.pop(device.device_request),) if device.device_request in files else (),
            )
            for device in claim.devices
        ]
        common = self._common(claim)
        own = (node for device in devices for node in device.nodes)
        link_nodes(self._paths.dev_root, (*common.control_nodes, *own))
        content = spec(self._driver_name, devices, common)
        write_atomically(self._file(claim.uid), content)

    def _common(self, claim: PreparedClaim) -> CdiCommon:
        """A claim without a card that NVIDIA's driver serves gets nothing of it, which need not be there."""
        nvidia = any(device.vendor is Vendor.NVIDIA and not device.vfio for device in claim.devices)
        return CdiCommon(
            control_nodes=control_nodes(self._paths.proc_root) if nvidia else (),
            driver=self._driver() if nvidia else DriverEdits(mounts=()),
            note=_note(claim),
            mark=mark(claim.uid),
        )

    def remove(self, uid: ClaimUID) -> None:
        """Remove the file, and those that it mounts; absent is fine."""
        remove_if_present(self._file(uid))
        self._files.metadata.remove(uid)

    def sweep(self, claims: Callable[[], Collection[ClaimUID]]) -> None:
        """Remove the files about devices that belong to none of these claims."""
        self._files.metadata.sweep(claims)

    def noted(self) -> dict[ClaimUID, PreparedClaim]:
        """The claims of the files that are there, as they were when their file was written.

        A file that does not tell, of an older driver or broken, is left out and logged.
        """
        found = {}
        for path in sorted(self._paths.cdi_dir.glob(file_name(self._driver_name, ClaimUID("*")))):
            note = note_of(self._driver_name, path.read_bytes())
            try:
                claim = _NOTE.decode(note or "")
            except msgspec.MsgspecError as error:
                _log.warning("CDI file does not say what it is for", path=str(path), error=str(error))
            else:
                found[claim.uid] = claim
        return found

    def exists(self, uid: ClaimUID) -> bool:
        """Whether the claim has its file."""
        return self._file(uid).exists()

    def _file(self, uid: ClaimUID) -> Path:
        return self._paths.cdi_dir / file_name(self._driver_name, uid)

    def _nodes(self, device: PreparedDevice) -> tuple[DeviceNode, ...]:
        if device.vendor is not Vendor.NVIDIA:
            return plain_nodes(self._paths.sys_root, device.gpu, device.vendor)
        if device.vfio:
            return self._vfio.nodes(device.gpu, device.vfio)
        minor = gpu_minor(self._paths.proc_root, device.gpu)
        if device.placement is None:
            return (gpu_node(minor),)
        instance = self._gpus.find_mig(device.gpu, device.placement)
        if instance is None or instance.compute_instance_id is None:
            raise GpuError(f"the MIG instance of {device.device} on GPU {device.gpu} went away while it was prepared")
        ids = instance.gpu_instance_id, instance.compute_instance_id
        return (gpu_node(minor), *mig_nodes(self._paths.proc_root, minor, *ids))

    def _driver(self) -> DriverEdits:
        if self._files.driver is not None:
            return self._files.driver
        return _edits(container_files(self._paths.driver_root), self._paths.driver_root, self._paths.host_driver_root)


@lru_cache(maxsize=4)
def _edits(files: tuple[Path, ...], root: Path, on_host: Path) -> DriverEdits:
    """Files below the root as the node has them, at the same place in the container."""
    below = [path.relative_to(root) for path in files]
    return DriverEdits(mounts=tuple(Mount(host_path=str(on_host / path), container_path=f"/{path}") for path in below))


def _note(claim: PreparedClaim) -> str:
    """The same for the first file and each later one: by the time that it counts all steps were done."""
    return msgspec.json.encode(replace(claim, state=ClaimState.COMPLETED, prepared_at=None)).decode()


def _mps(limits: MpsLimits, daemon: MpsDaemonStatus, share: str) -> MpsEdits:
    return MpsEdits(
        pipe_directory=daemon.pipe_of(share),
        shared_memory=daemon.shared_memory,
        thread_percentage=limits.thread_percentage,
        memory_limit=limits.memory_limit,
    )
