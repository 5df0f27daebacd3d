"""What was seen of a node to findings: kernel, cgroups, NVIDIA's driver, kubelet, IOMMU. Pure.

Each rule names its source; versions are compared by their first numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodedriver.doctor.findings import Finding, Verdict, ok, unknown
from nodedriver.doctor.seen import Kubelet, VendorDriver
from nodedriver.vfio.modules import how_to_load

KERNEL, CGROUPS, DRIVER, KUBELET, VFIO = (
    "KernelSupported", "CgroupsSupported", "DriverReady", "KubeletSupported", "VfioPossible",
)  # fmt: skip
_LEAST_KERNEL = (5, 8)  # Kubernetes, "About cgroup v2", requirements
_LEAST_KUBELET = (1, 34)  # resource.k8s.io/v1 (KEP-4381)
_FULL_KUBELET = (1, 36)  # partitions, shares and taints are on (KEP-4815, KEP-5075, KEP-5055)
# What a kubelet without the gate does not do; the one that is needed is told apart.
_NEEDED_GATE = "DynamicResourceAllocation"
_USEFUL_GATES = {
    "DRAExtendedResource": "pods that ask for an extended resource of a DeviceClass do not start",
    "ResourceHealthStatus": "the status of a pod does not tell of a sick device",
}


def numbers_of(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `v1.37.2` is (1, 37, 2), `5.15.0-91-generic` is (5, 15, 0); () without any."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def kernel(release: str) -> Finding:
    """Old kernels lack what cgroup v2 needs."""
    if not numbers_of(release):
        return unknown(KERNEL, "The version of the kernel could not be read.", "Look whether --proc-root is /proc.")
    if numbers_of(release) >= _LEAST_KERNEL:
        return ok(KERNEL, f"Linux {release}.")
    return Finding(
        check=KERNEL,
        verdict=Verdict.PROBLEM,
        reason="TooOld",
        what=f"The kernel is Linux {release}.",
        why="Kubernetes asks for 5.8 or newer with cgroup v2.",
        next_step="Update the node's operating system.",
    )


def cgroups(*, unified: bool, there: bool) -> Finding:
    """`unified`: cgroup v2; `there`: that a cgroup file system was found at all."""
    if unified:
        return ok(CGROUPS, "cgroup v2.")
    if not there:
        return unknown(CGROUPS, "No cgroup file system was found.", "Look whether --sys-root is the node's /sys.")
    return Finding(
        check=CGROUPS,
        verdict=Verdict.NOTE,
        reason="CgroupV1",
        what="The node runs cgroup v1.",
        why="A kubelet from 1.35 on refuses it unless failCgroupV1 is false.",
        next_step="Boot with systemd.unified_cgroup_hierarchy=1.",
    )


def vendor_driver(seen: VendorDriver) -> Finding:
    """The kernel module and the library have to be there, and of one version."""
    if not seen.cards:
        return Finding(
            check=DRIVER, verdict=Verdict.NOTE, reason="NoCard", what="No NVIDIA card is on the PCI bus.",
            next_step="If there should be one, look at lspci and the BIOS; else keep the node driver off this node.",
        )  # fmt: skip
    cards = f"{seen.cards} NVIDIA card{'s' if seen.cards > 1 else ''} on the PCI bus"
    if not seen.module:
        return _driver_problem(
            "ModuleNotLoaded",
            f"There {'are' if seen.cards > 1 else 'is'} {cards} and the kernel module nvidia is not loaded.",
            "Install NVIDIA's driver, or load the module with modprobe nvidia; dmesg says why that fails.",
        )
    if not seen.library:
        return _driver_problem(
            "LibraryNotFound",
            f"The kernel module has version {seen.module} and libnvidia-ml.so.1 is not below {seen.root}.",
            "Set --driver-root to where NVIDIA's driver lies, for example /run/nvidia/driver.",
        )
    if seen.library != seen.module:
        return _driver_problem(
            "VersionsDiffer",
            f"The kernel module has version {seen.module} and the library below {seen.root} {seen.library}.",
            "NVML answers nothing until both are the same: drain and reboot the node, or load the new module.",
        )
    return ok(DRIVER, f"NVIDIA's driver {seen.module}, {cards}.")


def kubelet(seen: Kubelet) -> Finding:
    """The kubelet has to know claims, and to look for plugins where we register."""
    if not seen.registrar_there:
        return _kubelet(
            Verdict.PROBLEM, "NoPluginFolder", f"There is no folder {seen.registrar_dir}.",
            "The kubelet finds a driver by its socket there only.",
            "Set --kubelet-dir to the kubelet's --root-dir (chart: nodeDriver.kubeletDir).",
        )  # fmt: skip
    if seen.gates.get(_NEEDED_GATE) is False:
        return _kubelet(
            Verdict.PROBLEM, "GateOff", f"The kubelet's feature gate {_NEEDED_GATE} is off.",
            "It prepares no resource claim.", "Remove the gate from featureGates and restart the kubelet.",
        )  # fmt: skip
    version = numbers_of(seen.version)
    if not version:
        return unknown(
            KUBELET, "The kubelet's version is not known.", "Give the doctor a way to the API server (--kubeconfig)."
        )
    return _kubelet_by_version(seen, version) or _kubelet_by_gates(seen)


def vfio(groups: int, missing: Sequence[str]) -> Finding:
    """Cards are passed through to virtual machines by IOMMU group alone, and not while modules are `missing` (kernel,
    Documentation/driver-api/vfio.rst).
    """
    if groups and not missing:
        return ok(VFIO, f"The IOMMU is on, with {groups} groups.", reason="IommuOn")
    if groups:
        return Finding(
            check=VFIO,
            verdict=Verdict.NOTE,
            reason="ModulesNotLoaded",
            what=f"The kernel has not loaded {' and '.join(missing)}.",
            why="A card that needs that can't be passed through to a virtual machine: no VFIO device is published.",
            next_step=f"If that is wanted: {how_to_load(missing)}; then restart the node driver.",
        )
    return Finding(
        check=VFIO,
        verdict=Verdict.NOTE,
        reason="IommuOff",
        what="The kernel has no IOMMU groups.",
        why="No card can be passed through to a virtual machine.",
        next_step="If that is wanted, switch on VT-d or AMD-Vi in the BIOS, and boot with intel_iommu=on on Intel.",
    )


def _kubelet_by_version(seen: Kubelet, version: tuple[int, ...]) -> Finding | None:
    if version < _LEAST_KUBELET:
        return _kubelet(
            Verdict.PROBLEM, "TooOld", f"The kubelet is {seen.version}.", "Resource claims need 1.34 or newer.",
            "Update the node.",
        )  # fmt: skip
    if version < _FULL_KUBELET:
        return _kubelet(
            Verdict.NOTE, "WholeCardsOnly", f"The kubelet is {seen.version}.",
            "Before 1.36 partitions, shares and taints of devices are off by default: whole cards only.",
            "Update the cluster to 1.36 or newer.",
        )  # fmt: skip
    return None


def _kubelet_by_gates(seen: Kubelet) -> Finding:
    off = [f"{gate}: {lost}" for gate, lost in _USEFUL_GATES.items() if seen.gates.get(gate) is False]
    if not off:
        return ok(KUBELET, f"kubelet {seen.version}.")
    return _kubelet(
        Verdict.NOTE, "GateOff", f"The kubelet {seen.version} has feature gates off.", f"{'; '.join(off)}.",
        "Remove them from featureGates and restart the kubelet.",
    )  # fmt: skip


def _kubelet(verdict: Verdict, reason: str, what: str, why: str, next_step: str) -> Finding:
    return Finding(check=KUBELET, verdict=verdict, reason=reason, what=what, why=why, next_step=next_step)


def _driver_problem(reason: str, what: str, next_step: str) -> Finding:
    return Finding(
        check=DRIVER, verdict=Verdict.PROBLEM, reason=reason, what=what,
        why="Without NVIDIA's driver no card can be published or prepared.", next_step=next_step,
    )  # fmt: skip
