"""The CDI files, one a resource claim: gathers what `cdi` needs to know, writes the file, removes it.

Device numbers are read anew for each file, since a MIG instance has them only once it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dra.names import ClaimUID
from nodedriver.cdi import CdiDevice, Mount, MpsEdits, device_name, file_name, qualified_name, spec
from nodedriver.checkpoint import PreparedClaim, PreparedDevice
from nodedriver.driverroot import container_files
from nodedriver.facts import DeviceNode, PciAddress
from nodedriver.files import remove_if_present, write_atomically
from nodedriver.gpuconfig import MpsLimits
from nodedriver.ports import GpuError, Gpus, MpsDaemonStatus
from nodedriver.procfs import control_nodes, gpu_node, mig_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePaths:
    """Where things lie: the CDI folder, the node's /proc, NVIDIA's driver as we and as the node see it."""

    cdi_dir: Path
    proc_root: Path
    driver_root: Path
    host_driver_root: Path


class ClaimSpecs:
    """The files of one driver. `minors` are the device minors of the cards. OSError where the disk says no."""

    def __init__(self, driver_name: str, paths: NodePaths, gpus: Gpus, minors: Mapping[PciAddress, int]) -> None:
        self._driver_name = driver_name
        self._paths = paths
        self._gpus = gpus
        self._minors = minors
        paths.cdi_dir.mkdir(parents=True, exist_ok=True)

    def device_id(self, uid: ClaimUID, device: str, device_request: str) -> str:
        """The qualified CDI name that the kubelet hands to the container runtime."""
        return qualified_name(self._driver_name, device_name(uid, device, device_request))

    def write(self, claim: PreparedClaim, daemons: Mapping[str, MpsDaemonStatus]) -> None:
        """Make the file say what this claim's containers get; `daemons` are those of its devices, by device UUID.

        GpuError when the kernel modules do not tell a device's numbers.
        """
        devices = [
            CdiDevice(
                name=device_name(claim.uid, device.device, device.device_request),
                nodes=self._nodes(device),
                mps=_mps(device.mps, daemons[device.uuid]) if device.mps else None,
            )
            for device in claim.devices
        ]
        content = spec(self._driver_name, devices, control_nodes(self._paths.proc_root), self._driver_files())
        write_atomically(self._file(claim.uid), content)

    def remove(self, uid: ClaimUID) -> None:
        """Remove the file; absent is fine."""
        remove_if_present(self._file(uid))

    def _file(self, uid: ClaimUID) -> Path:
        return self._paths.cdi_dir / file_name(self._driver_name, uid)

    def _nodes(self, device: PreparedDevice) -> tuple[DeviceNode, ...]:
        minor = self._minors[device.gpu]
        if device.placement is None:
            return (gpu_node(minor),)
        instance = self._gpus.find_mig(device.gpu, device.placement)
        if instance is None or instance.compute_instance_id is None:
            raise GpuError(f"the MIG instance of {device.device} on GPU {device.gpu} went away while it was prepared")
        ids = instance.gpu_instance_id, instance.compute_instance_id
        return (gpu_node(minor), *mig_nodes(self._paths.proc_root, minor, *ids))

    def _driver_files(self) -> list[Mount]:
        root, on_host = self._paths.driver_root, self._paths.host_driver_root
        found = [path.relative_to(root) for path in container_files(root)]
        return [Mount(host_path=str(on_host / path), container_path=f"/{path}") for path in found]


def _mps(limits: MpsLimits, daemon: MpsDaemonStatus) -> MpsEdits:
    return MpsEdits(
        pipe_directory=daemon.pipe_directory,
        shared_memory=daemon.shared_memory,
        thread_percentage=limits.thread_percentage,
        memory_limit=limits.memory_limit,
    )
