"""One node for each driver, with the facts that the driver really publishes, and the classes that its users make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dra.allocation import Snapshot
from dra.objects import DeviceClass, Node, ResourceClaim, ResourceSlice, decode
from tests.gpuinventory.fleet import slices_of

NVIDIA, AMD, INTEL = "gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"
HAMI, EXAMPLE, OURS, UNKNOWN = "hami-core-gpu.project-hami.io", "gpu.example.com", "gpu.portico.dev", "npu.acme.io"


def device(name: str, memory: str = "", *, shared: bool = False, **attributes: str) -> dict[str, Any]:
    """A device with text attributes and perhaps a memory."""
    capacity = {"memory": {"value": memory}} if memory else {}
    texts = {key: {"string": value} for key, value in attributes.items()}
    return {"name": name, "attributes": texts, "capacity": capacity, "allowMultipleAllocations": shared}


def _shared(value: str, least: str, *, step: str) -> dict[str, Any]:
    """A capacity of which each share takes a part, all of it if it says nothing."""
    span = {"min": least, "max": value, "step": step}
    return {"value": value, "requestPolicy": {"default": value, "validRange": span}}


DEVICES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    # gpu.nvidia.com 25.8: whole A100s, one of them cut into two MIG devices.
    NVIDIA: (
        device("gpu-0", "40Gi", type="gpu", productName="NVIDIA A100-PCIE-40GB", uuid="GPU-1"),
        device("gpu-1", "40Gi", type="gpu", productName="NVIDIA A100-PCIE-40GB", uuid="GPU-2"),
        device("gpu-2-mig-0", "4864Mi", type="mig", productName="NVIDIA A100-PCIE-40GB", profile="1g.5gb"),
        device("gpu-2-mig-1", "4864Mi", type="mig", productName="NVIDIA A100-PCIE-40GB", profile="1g.5gb"),
    ),
    AMD: (
        device(
            "gpu-0-128", "196592Mi", type="amdgpu", productName="AMD_Instinct_MI300X_OAM", partitionProfile="spx_nps1"
        ),
    ),
    INTEL: (
        device("0000-03-00-0-0x56c0", "14248Mi", model="Flex 170", family="Data Center Flex", pciId="0x56c0"),
        device("0000-04-00-0-0xe211", "24480Mi", model="Unknown", family="Unknown", pciId="0xe211"),
    ),
    # HAMi-DRA, docs/fake-dra-driver.md: what a share does not name it takes whole.
    HAMI: (
        device("hami-gpu-0", shared=True, type="hami-gpu", productName="NVIDIA A100-SXM4-80GB")
        | {"capacity": {"cores": _shared("100", "0", step="1"), "memory": _shared("80Gi", "1Mi", step="1Mi")}},
    ),
    EXAMPLE: tuple(device(f"gpu-{n}", "80Gi", model="LATEST-GPU-MODEL", uuid=f"gpu-{n}") for n in range(4)),
    UNKNOWN: (device("npu-0"),),
}


def slice_of(driver: str) -> dict[str, Any]:
    """The slice of that driver's node."""
    return {
        "metadata": {"name": f"{driver}-slice"},
        "spec": {
            "driver": driver,
            "nodeName": f"node-{driver}",
            "pool": {"name": f"node-{driver}", "generation": 1, "resourceSliceCount": 1},
            "devices": DEVICES[driver],
        },
    }


def device_class(name: str, *expressions: str) -> DeviceClass:
    """A DeviceClass with these selectors."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": selectors}}, DeviceClass)


def of_driver(driver: str) -> str:
    """CEL: devices of that driver."""
    return f'device.driver == "{driver}"'


def fleet_of(
    *drivers: str, classes: Sequence[DeviceClass] = (), claims: Sequence[ResourceClaim] = (), cards: int = 0
) -> Snapshot:
    """A node for each of these drivers; with `cards`, one more with so many H100 of our own driver."""
    slices = [msgspec.convert(slice_of(each), ResourceSlice) for each in drivers]
    slices += [decode(body, ResourceSlice) for body in slices_of("node-h100", cards=cards)] if cards else []
    names = [*(f"node-{each}" for each in drivers), *(["node-h100"] if cards else [])]
    nodes = [msgspec.convert({"metadata": {"name": name}}, Node) for name in names]
    return Snapshot.build(nodes=nodes, slices=slices, classes=classes, resource_claims=claims)
