"""A mixed fleet of hollow nodes for the corpus of wishes: our own inventory's slices, and foreign drivers' by facts.

Values and one function that makes them in a cluster. Foreign devices carry the names that their drivers publish. What
stands in a pod's way is there too: a cordoned node, a tainted one, one without CPU, tainted cards, a pool that lacks a
slice, a driver whose devices lack what a class reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from simulator.machines import facts_of_machine
from tests.cluster.cluster import Cluster
from tests.cluster.hardware import slices_for
from tests.cluster.hollow import HollowNodes

OURS: Final = "gpu.portico.dev"
NVIDIA, AMD, INTEL = "gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"
HAMI, SLOTS, FABRIC, NPU = "hami-core-gpu.project-hami.io", "slots.example.com", "fabric.example.com", "npu.acme.io"
API: Final = "resource.k8s.io/v1"
type Object = Mapping[str, Any]

# Name of the node: the machine whose cards it has, and how many of them.
OUR_NODES: Final[Mapping[str, tuple[str, int]]] = {
    "h100-1": ("h100x8", 2),
    "h100-2": ("h100x8", 4),
    "h100-shut": ("h100x8", 1),
    "h100-kept": ("h100x8", 1),
    "h200-1": ("h200x8", 2),
    "a100-1": ("a100x8", 4),
    "l4-1": ("l4x4", 4),
    "l4-shut": ("l4x4", 4),
}
CORDONED: Final = ("h100-shut", "l4-shut")
KEPT: Final = "h100-kept"  # its taint keeps pods away
FOREIGN_NODES: Final = ("nvidia-1", "nvidia-torn", "amd-1", "intel-1", "hami-1", "npu-1", "npu-2")
BUSY: Final = "slots-1"  # half a CPU is left


def _texts(**attributes: str) -> dict[str, Any]:
    return {name: {"string": text} for name, text in attributes.items()}


def _device(name: str, memory: str, root: str, **attributes: str) -> dict[str, Any]:
    """A device of one owner with a memory, on a PCIe root."""
    pcie = {"resource.kubernetes.io/pcieRoot": {"string": root}}
    return {"name": name, "attributes": _texts(**attributes) | pcie, "capacity": {"memory": {"value": memory}}}


def _nvidia(number: int, **more: Any) -> dict[str, Any]:
    product = {"productName": "NVIDIA A100-SXM4-40GB", "architecture": "Ampere", "type": "gpu"}
    return _device(f"gpu-{number}", "40Gi", f"pci0000:{number // 2}0", **product) | more


def _hami(number: int) -> dict[str, Any]:
    """What HAMi's driver publishes: cores in percent and memory, both to be consumed in parts."""
    device = _device(f"hami-gpu-{number}", "80Gi", "pci0000:5a", type="hami-gpu", productName="NVIDIA A100-SXM4-80GB")
    cores = {"default": "100", "validRange": {"min": "0", "max": "100", "step": "1"}}
    memory = {"default": "80Gi", "validRange": {"min": "1Mi", "max": "80Gi", "step": "1Mi"}}
    capacity = {
        "cores": {"value": "100", "requestPolicy": cores},
        "memory": {"value": "80Gi", "requestPolicy": memory},
    }
    return device | {"capacity": capacity, "allowMultipleAllocations": True}


def _slotted(number: int) -> dict[str, Any]:
    policy = {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}}
    return {
        "name": f"gpu-{number}",
        "allowMultipleAllocations": True,
        "capacity": {"slots": {"value": "4", "requestPolicy": policy}},
    }


_GONE: Final = {"key": "gpu.example.com/xid", "value": "79", "effect": "NoExecute"}
_DEVICES: Final[Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]] = {
    ("nvidia-1", NVIDIA): (
        *(_nvidia(number) for number in range(3)),
        _nvidia(3, taints=[_GONE]),
        *(
            _device(f"gpu-4-mig-{number}", "4864Mi", "pci0000:20", type="mig", profile="1g.5gb", productName="A100")
            for number in range(2)
        ),
    ),
    ("nvidia-torn", NVIDIA): (_nvidia(0),),
    ("amd-1", AMD): tuple(
        _device(
            f"gpu-{number}-128",
            "196592Mi",
            f"pci000{number // 2}:00",
            type="amdgpu",
            productName="AMD_Instinct_MI300X_OAM",
            partitionProfile="spx_nps1",
        )
        for number in range(4)
    ),
    ("intel-1", INTEL): (
        _device("0000-03-00-0-0x56c0", "14248Mi", "pci0000:03", model="Flex 170", family="Data Center Flex"),
        _device("0000-04-00-0-0xe211", "24480Mi", "pci0000:04", model="Unknown", family="Unknown"),
    ),
    ("hami-1", HAMI): (_hami(0), _hami(1)),
    ("slots-1", SLOTS): (_slotted(0), _slotted(1)),
    ("npu-1", NPU): ({"name": "npu-0"}, {"name": "npu-1", "attributes": _texts(model="one")}),
    ("npu-2", NPU): ({"name": "npu-0", "attributes": _texts(model="two")},),
}
_TORN: Final = "nvidia-torn"


def _slice(name: str, driver: str, devices: Sequence[Mapping[str, Any]], place: Object, count: int = 1) -> Object:
    pool = {"name": name, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": pool, "devices": devices, **place}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{name}-{driver}"}, "spec": spec}


def foreign_slices(node: str) -> list[Object]:
    """What the driver of that node publishes; of one pool half is missing."""
    return [
        _slice(node, driver, devices, {"nodeName": node}, 2 if node == _TORN else 1)
        for (name, driver), devices in _DEVICES.items()
        if name == node
    ]


def reached_by_many() -> list[Object]:
    """Devices of no node: two that every node reaches, and two that only the nodes with H100 do."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["h100-1", "h100-2"]}]}
    some = {"nodeSelector": {"nodeSelectorTerms": [term]}}
    links = [{"name": f"link-{number}", "attributes": _texts(kind="link")} for number in range(2)]
    ports = [{"name": f"port-{number}", "attributes": _texts(kind="port")} for number in range(2)]
    return [_slice("links", FABRIC, links, {"allNodes": True}), _slice("ports", FABRIC, ports, some)]


def _class(name: str, *expressions: str, extended: str = "") -> Object:
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": each}} for each in expressions]}
    if extended:
        spec["extendedResourceName"] = extended
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _our(name: str, kind: str, product: str = "", extended: str = "") -> Object:
    own = f'device.attributes["{OURS}"]'
    more = [f'{own}.productName.contains("{product}")'] if product else []
    return _class(
        name,
        f'device.driver == "{OURS}" && ' + " && ".join([f'{own}.deviceType == "{kind}"', *more]),
        extended=extended,
    )


def _of(driver: str, condition: str = "") -> str:
    return f'device.driver == "{driver}"' + (f' && device.attributes["{driver}"].{condition}' if condition else "")


CLASSES: Final = (
    _our("h100", "Physical", "H100", extended=f"{OURS}/h100"),
    _our("h200", "Physical", "H200"),
    _our("a100", "Physical", "A100", extended=f"{OURS}/a100"),
    _our("l4", "Physical", "L4"),
    _our("whole", "Physical"),
    _our("mig", "MIG"),
    _class("gpu.nvidia.com", _of(NVIDIA, 'type == "gpu"'), extended="nvidia.com/gpu"),
    _class("mig.nvidia.com", _of(NVIDIA, 'type == "mig"')),
    _class(AMD, _of(AMD)),
    _class(INTEL, _of(INTEL)),
    _class(HAMI, _of(HAMI)),
    _class("slots", _of(SLOTS)),
    _class("links", _of(FABRIC, 'kind == "link"')),
    _class("ports", _of(FABRIC, 'kind == "port"')),
    _class("npu", _of(NPU)),
    _class("npu-two", _of(NPU, 'model == "two"')),  # fails on the device without the attribute
    _class("anything"),
)
TAINT_RULE: Final[Object] = {
    "apiVersion": API,
    "kind": "DeviceTaintRule",
    "metadata": {"name": "l4-3-maintenance"},
    "spec": {
        "deviceSelector": {"driver": OURS, "pool": "l4-1", "device": "gpu-3"},
        "taint": {"key": "gpu.example.com/maintenance", "value": "true", "effect": "NoSchedule"},
    },
}


def make_fleet(cluster: Cluster, nodes: HollowNodes) -> None:
    """All of it; returns when the nodes take pods."""
    cluster.apply(*CLASSES, TAINT_RULE, *reached_by_many())
    facts = {machine: facts_of_machine(machine) for machine, _ in OUR_NODES.values()}  # one NVML a process

    def ours(name: str) -> list[Object]:
        machine, cards = OUR_NODES[name]
        return slices_for(cluster, OURS, name, facts[machine][:cards])

    nodes.make([name for name in OUR_NODES if name not in CORDONED], ours)
    nodes.make(CORDONED, ours, cordoned=True)
    nodes.make(FOREIGN_NODES, foreign_slices)
    nodes.make([BUSY], foreign_slices, cpu="500m")
    cluster.kubectl("taint", "node", KEPT, "example.com/kept=yes:NoSchedule")
