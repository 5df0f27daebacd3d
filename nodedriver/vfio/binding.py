"""Binds a card and what must move with it to the module that passes it through, and back to the vendor's driver.

Fulfils `nodedriver.ports.Vfio`. Every call may be repeated: "already" counts as done, and what a call that died left in
between is put right by the next, whichever way it goes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from nodedriver import sysfs
from nodedriver.deadline import seconds_left
from nodedriver.facts import DeviceNode, PciAddress
from nodedriver.ports import GpuError, MigModes
from nodedriver.procfs import gpu_minor
from nodedriver.sysfs import NVIDIA
from nodedriver.vfio import iommu
from nodedriver.vfio.holders import named, pids_with
from nodedriver.vfio.iommu import Roots
from nodedriver.vfio.modules import is_vfio
from nodedriver.vfio.writing import SysfsWriter, Write
from nodedriver.vfioconfig import BackendPolicy, VfioConfig

FREE_SECONDS = 5.0  # for what holds the card to let it go; the kubelet calls again
_POLL = 0.1


class Cards(MigModes, Protocol):
    """What is asked of the cards while NVIDIA's driver has them."""

    def set_persistence(self, gpu: PciAddress, *, on: bool) -> None:
        """Switch persistence mode, in which the kernel module keeps the card open."""


class VfioPci:
    """The cards of this node, as far as passing them through goes. GpuError, naming who or what is in the way."""

    def __init__(self, roots: Roots, gpus: Cards, writer: SysfsWriter | None = None) -> None:
        self._roots = roots
        self._gpus = gpus
        self._writer = writer or SysfsWriter()

    def has(self, gpu: PciAddress) -> bool:
        """Whether the card and all that must move with it are bound to VFIO drivers."""
        return all(iommu.is_passed_through(self._roots.sys, each) for each in iommu.members(self._roots.sys, gpu))

    def bind(self, gpu: PciAddress) -> None:
        """Be passed through. The card is out of MIG mode."""
        driver = self._may_be_bound(gpu)
        if self.has(gpu):
            return
        if sysfs.driver(self._roots.sys, gpu) == NVIDIA:
            # The kernel module keeps a persistent card open, and so does our own session of NVML.
            self._gpus.set_persistence(gpu, on=False)
            self._await_free(gpu, f"/dev/nvidia{gpu_minor(self._roots.proc, gpu)}")
        with self._gpus.let_go():
            self._move(gpu, driver)

    def give_back(self, gpu: PciAddress, *, persistence: bool) -> None:
        """Be bound to the vendor's driver, in persistence mode if it was before."""
        if iommu.is_passed_through(self._roots.sys, gpu):
            self._await_free(gpu, *(node.path for node in self._own_nodes(gpu)))
        if sysfs.driver(self._roots.sys, gpu) == NVIDIA:
            self._bring_back(gpu)
        else:
            with self._gpus.let_go():
                self._bring_back(gpu)
        if persistence:
            self._gpus.set_persistence(gpu, on=True)

    def nodes(self, gpu: PciAddress, config: VfioConfig) -> tuple[DeviceNode, ...]:
        """What a container needs to open the card: of iommufd where it is preferred and there, else of the group."""
        device = self._device_node(gpu) if config.backend is BackendPolicy.PREFER_IOMMUFD else None
        own = self._group_node(gpu) if device is None else device
        if not config.api_device:
            return (own,)
        api = self._node("misc/vfio", "/dev/vfio/vfio") if device is None else self._node("misc/iommu", "/dev/iommu")
        return (own, api)

    def _may_be_bound(self, gpu: PciAddress) -> str:
        """The driver that it is to have."""
        if sysfs.driver(self._roots.sys, gpu) is None:  # and not to be taken for a card that no driver has
            raise GpuError(f"GPU {gpu} can't be passed through: sysfs does not tell its driver now; see dmesg")
        if reason := iommu.why_not(self._roots, gpu):
            raise GpuError(f"GPU {gpu} can't be passed through: {reason}")
        if count := iommu.virtual_functions(self._roots.sys, gpu):
            raise GpuError(
                f"GPU {gpu} can't be passed through: it has {count} SR-IOV functions (sriov_numvfs), which virtual "
                "machines may use: remove them first"
            )
        return iommu.module_driver(self._roots, gpu) or ""

    def _await_free(self, gpu: PciAddress, *nodes: str) -> None:
        give_up = time.monotonic() + seconds_left(FREE_SECONDS)
        while found := self._holders(gpu, nodes):
            if time.monotonic() >= give_up:
                raise GpuError(
                    f"GPU {gpu} can't change its driver: {named(self._roots.proc, found)} still has it open "
                    f"({' or '.join(nodes)}) after {FREE_SECONDS:g} s: end that, be it a monitoring agent or "
                    "nvidia-persistenced"
                )
            time.sleep(_POLL)

    def _holders(self, gpu: PciAddress, nodes: Collection[str]) -> set[int]:
        """Whoever has the card open but we, who let go of it in time."""
        known = self._gpus.use_of(gpu).processes if sysfs.driver(self._roots.sys, gpu) == NVIDIA else ()
        return {*pids_with(self._roots.proc, nodes), *known} - {os.getpid()}

    def _move(self, gpu: PciAddress, driver: str) -> None:
        for each in iommu.members(self._roots.sys, gpu):
            if not iommu.is_passed_through(self._roots.sys, each):
                override: Write = (iommu.device_folder(self._roots.sys, each) / "driver_override", driver)
                bind: Write = (iommu.drivers_folder(self._roots.sys) / driver / "bind", each)
                self._writer.write(gpu, (override, *self._unbind(each), bind))
            self._verify(gpu, each, vfio=True)

    def _bring_back(self, gpu: PciAddress) -> None:
        """Without an override the card goes to NVIDIA's driver, and a companion to whichever the kernel finds."""
        for each in iommu.members(self._roots.sys, gpu):
            current = sysfs.driver(self._roots.sys, each)
            override: Write = (iommu.device_folder(self._roots.sys, each) / "driver_override", "")
            bind: Write = (self._bind_file(gpu, each), each)
            moved = not current or is_vfio(current)
            self._writer.write(gpu, (override, *self._unbind(each), bind) if moved else (override,))
            self._verify(gpu, each, vfio=False)

    def _bind_file(self, gpu: PciAddress, address: str) -> Path:
        drivers = iommu.drivers_folder(self._roots.sys)
        return drivers / NVIDIA / "bind" if address == gpu else drivers.parent / "drivers_probe"

    def _unbind(self, address: str) -> tuple[Write, ...]:
        current = sysfs.driver(self._roots.sys, address)
        return ((iommu.drivers_folder(self._roots.sys) / current / "unbind", address),) if current else ()

    def _verify(self, gpu: PciAddress, address: str, *, vfio: bool) -> None:
        driver = sysfs.driver(self._roots.sys, address)
        right = is_vfio(driver) if vfio else driver == NVIDIA or (address != gpu and not is_vfio(driver))
        if not right:
            wanted = "a VFIO driver" if vfio else f"the driver {NVIDIA}"
            raise GpuError(
                f"GPU {gpu}: {address} has {driver or 'no driver'} and not {wanted} after binding: see dmesg"
            )

    def _own_nodes(self, gpu: PciAddress) -> tuple[DeviceNode, ...]:
        device = self._device_node(gpu)
        return (self._group_node(gpu), *((device,) if device else ()))

    def _group_node(self, gpu: PciAddress) -> DeviceNode:
        group = iommu.group_of(self._roots.sys, gpu)
        return self._node(f"vfio/{group}", f"/dev/vfio/{group}")

    def _device_node(self, gpu: PciAddress) -> DeviceNode | None:
        """The node by which iommufd opens the card alone; None where the kernel has no such thing."""
        if not iommu.has_iommufd(self._roots.sys):
            return None
        folder = iommu.device_folder(self._roots.sys, gpu) / "vfio-dev"
        name = next((each.name for each in sorted(folder.glob("vfio*"))), None)
        return self._node(f"vfio-dev/{name}", f"/dev/vfio/devices/{name}") if name else None

    def _node(self, class_path: str, path: str) -> DeviceNode:
        """A node with its numbers, which sysfs tells (sysfs-class, `dev`)."""
        file = self._roots.sys / "class" / class_path / "dev"
        try:
            major, _, minor = file.read_text().strip().partition(":")
        except OSError as error:
            raise GpuError(
                f"{file} can't be read: {error.strerror}. See whether the vfio modules are loaded."
            ) from error
        return DeviceNode(path, int(major), int(minor))
