"""What is published of a card as a device for virtual machines, beside what all devices of a card say. Pure.

Names are those of NVIDIA's driver (`iommuFDEnabled`, `deviceID`, `vendorID`, `addressableMemory`).
"""

from __future__ import annotations

from uuid import NAMESPACE_DNS, uuid5

from dra.objects import DeviceAttribute, DeviceCapacity
from dra.quantity import Format, Quantity
from nodedriver.facts import GpuFacts, PciAddress, VfioFacts


def vfio_uuid(gpu: PciAddress) -> str:
    """The UUID of a card that NVML can't be asked about: made of its address, as NVIDIA's driver does."""
    return str(uuid5(NAMESPACE_DNS, gpu))


def vfio_attributes(gpu: PciAddress, facts: VfioFacts) -> dict[str, DeviceAttribute]:
    """In place of, and beside, the common ones. No CUDA program runs on such a device."""
    return {
        "uuid": DeviceAttribute(string=vfio_uuid(gpu)),
        "cudaReady": DeviceAttribute(bool_=False),
        "vfioReady": DeviceAttribute(bool_=True),
        "vendorID": DeviceAttribute(string=facts.vendor_id),
        "deviceID": DeviceAttribute(string=facts.device_id),
        "iommuFDEnabled": DeviceAttribute(bool_=facts.iommufd),
    }


def vfio_capacity(gpu: GpuFacts, facts: VfioFacts) -> dict[str, DeviceCapacity]:
    """Its memory, and the bytes that its BARs take of a virtual machine's address space. Given whole."""
    amounts = {"memory": gpu.memory, "addressableMemory": facts.addressable_memory}
    return {
        name: DeviceCapacity(value=str(Quantity.of(amount, Format.BINARY_SI)))
        for name, amount in amounts.items()
        if amount
    }
