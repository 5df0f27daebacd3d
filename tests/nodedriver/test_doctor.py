"""What the doctor makes of what it saw: one table a check. Each finding says what, why and what to do next."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dra.names import ClaimUID
from nodedriver.doctor import cards, judging, report, runtimes
from nodedriver.doctor.findings import Finding, Verdict, about, has_problem, ok
from nodedriver.doctor.seen import Holder, Kubelet, Offers, Runtime, VendorDriver
from nodedriver.facts import MigInstanceFacts, MigPlacement, MigUUID, PciAddress
from nodedriver.holding import ClaimState, PreparedClaim, PreparedDevice
from tests.nodedriver.gpus import card

type Told = tuple[str, str]  # verdict, reason


def told(finding: Finding) -> Told:
    """And every finding that is not in order says what to do, a problem also why it matters."""
    assert finding.what
    assert finding.next_step or finding.verdict is Verdict.OK
    assert finding.why or finding.verdict is not Verdict.PROBLEM
    return finding.verdict.value, finding.reason


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.8.0-45-generic", ("ok", "AsExpected")),
        ("5.8.0", ("ok", "AsExpected")),
        ("5.7.19", ("problem", "TooOld")),
        ("4.18.0-553.el8.x86_64", ("problem", "TooOld")),
        ("", ("unknown", "NotSeen")),
    ],
)
def test_kernel(release: str, expected: Told) -> None:
    assert told(judging.kernel(release)) == expected


@pytest.mark.parametrize(
    ("unified", "there", "expected"),
    [
        (True, True, ("ok", "AsExpected")),
        (False, True, ("note", "CgroupV1")),
        (False, False, ("unknown", "NotSeen")),
    ],
)
def test_cgroups(unified: bool, there: bool, expected: Told) -> None:  # noqa: FBT001
    assert told(judging.cgroups(unified=unified, there=there)) == expected


DRIVERS = {
    "loaded": (VendorDriver(module="580.65.06", library="580.65.06", cards=8), ("ok", "AsExpected")),
    "no card": (VendorDriver(), ("note", "NoCard")),
    "no module": (VendorDriver(library="580.65.06", cards=1), ("problem", "ModuleNotLoaded")),
    "no library": (VendorDriver(module="580.65.06", cards=1), ("problem", "LibraryNotFound")),
    "updated under our feet": (
        VendorDriver(module="575.57.08", library="580.65.06", cards=1),
        ("problem", "VersionsDiffer"),
    ),
}


@pytest.mark.parametrize(("seen", "expected"), DRIVERS.values(), ids=DRIVERS)
def test_vendor_driver(seen: VendorDriver, expected: Told) -> None:
    assert told(judging.vendor_driver(seen)) == expected


KUBELETS = {
    "new": (Kubelet(version="v1.37.2"), ("ok", "AsExpected")),
    "full from 1.36": (Kubelet(version="v1.36.0"), ("ok", "AsExpected")),
    "whole cards": (Kubelet(version="v1.35.3"), ("note", "WholeCardsOnly")),
    "whole cards from 1.34": (Kubelet(version="v1.34.0"), ("note", "WholeCardsOnly")),
    "too old": (Kubelet(version="v1.33.9"), ("problem", "TooOld")),
    "not asked": (Kubelet(), ("unknown", "NotSeen")),
    "elsewhere": (
        Kubelet(version="v1.37.2", registrar_dir="/var/lib/kubelet/plugins_registry", registrar_there=False),
        ("problem", "NoPluginFolder"),
    ),
    "claims off": (Kubelet(version="v1.34.1", gates={"DynamicResourceAllocation": False}), ("problem", "GateOff")),
    "claims on": (Kubelet(version="v1.37.2", gates={"DynamicResourceAllocation": True}), ("ok", "AsExpected")),
    "less without health": (Kubelet(version="v1.37.2", gates={"ResourceHealthStatus": False}), ("note", "GateOff")),
    "another gate": (Kubelet(version="v1.37.2", gates={"KubeletTracing": False}), ("ok", "AsExpected")),
}


@pytest.mark.parametrize(("seen", "expected"), KUBELETS.values(), ids=KUBELETS)
def test_kubelet(seen: Kubelet, expected: Told) -> None:
    assert told(judging.kubelet(seen)) == expected


@pytest.mark.parametrize(
    ("groups", "missing", "expected"),
    [
        (12, (), ("ok", "IommuOn")),
        (12, ("vfio_pci",), ("note", "ModulesNotLoaded")),
        (0, ("vfio_pci",), ("note", "IommuOff")),
    ],
)
def test_vfio(groups: int, missing: tuple[str, ...], expected: Told) -> None:
    assert told(judging.vfio(groups, missing)) == expected


def containerd(version: str = "", **more: Any) -> Runtime:
    return Runtime(name="containerd", version=version, config_file="/etc/containerd/config.toml", **more)


def crio(version: str = "", **more: Any) -> Runtime:
    return Runtime(name="CRI-O", version=version, config_file="/etc/crio/crio.conf", **more)


RUNTIMES = {
    "containerd 2": (containerd("2.1.4"), ("ok", "AsExpected")),
    "containerd 2, off": (containerd("2.1.4", cdi_enabled=False), ("problem", "CdiOff")),
    "containerd 1.7": (containerd("1.7.28"), ("problem", "CdiOff")),
    "containerd 1.7, on": (containerd("1.7.28", cdi_enabled=True), ("ok", "AsExpected")),
    "containerd 1.6": (containerd("1.6.33", cdi_enabled=True), ("problem", "TooOld")),
    "containerd, on": (containerd(cdi_enabled=True), ("ok", "AsExpected")),
    "containerd, who knows": (containerd(), ("unknown", "NotSeen")),
    "another folder": (containerd("2.1.4", spec_dirs=("/etc/cdi",)), ("problem", "OtherFolder")),
    "our folder by its other name": (containerd("2.1.4", spec_dirs=("/run/cdi/",)), ("ok", "AsExpected")),
    "a broken file": (containerd("2.1.4", trouble="config.toml: line 3"), ("unknown", "NotSeen")),
    "CRI-O": (crio("1.33.0"), ("ok", "AsExpected")),
    "CRI-O without folders": (crio("1.33.0", cdi_enabled=False, spec_dirs=()), ("problem", "CdiOff")),
    "old CRI-O": (crio("1.22.4"), ("problem", "TooOld")),
    "none": (None, ("unknown", "NotSeen")),
}


@pytest.mark.parametrize(("seen", "expected"), RUNTIMES.values(), ids=RUNTIMES)
def test_runtime(seen: Runtime | None, expected: Told) -> None:
    assert told(runtimes.runtime(seen, "/var/run/cdi")) == expected


def test_where_cdi_is_switched_on_is_told_by_the_version() -> None:
    steps = [runtimes.runtime(containerd(v, cdi_enabled=False), "/run/cdi").next_step for v in ("1.7.2", "2.0.1")]
    assert ["io.containerd.grpc.v1.cri" in steps[0], "io.containerd.cri.v1.runtime" in steps[1]] == [True, True]


CONFIGURATIONS = {
    "version 3": ({"io.containerd.cri.v1.runtime": {"enable_cdi": True, "cdi_spec_dirs": ["/a"]}}, (True, ("/a",))),
    "version 2": ({"io.containerd.grpc.v1.cri": {"enable_cdi": False}}, (False, None)),
    "version 1": ({"cri": {"cdi_spec_dirs": ["/b", "/c"]}}, (None, ("/b", "/c"))),
    "nothing stated": ({"io.containerd.cri.v1.images": {"snapshotter": "native"}}, (None, None)),
}


@pytest.mark.parametrize(("plugins", "expected"), CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_settings_of_containerd(plugins: dict[str, Any], expected: tuple[bool | None, tuple[str, ...] | None]) -> None:
    assert runtimes.containerd_settings({"plugins": plugins}) == expected


def test_settings_of_cri_o() -> None:
    assert runtimes.crio_settings({"crio": {"runtime": {"cdi_spec_dirs": ["/a"]}}}) == (True, ("/a",))
    assert runtimes.crio_settings({"crio": {"runtime": {"cdi_spec_dirs": []}}}) == (False, ())
    assert runtimes.crio_settings({"crio": {}}) == (None, None)


FIRST, SECOND = card(bus=0x18), card(bus=0x19)


def test_agents_are_told_card_by_card_with_process_and_pod() -> None:
    holders = (
        Holder(pid=71, name="dcgm-exporter", gpu=SECOND.pci_address, pod="pod-uid"),
        Holder(pid=72, name="nvtop", gpu=SECOND.pci_address),
    )
    free, held = cards.agents((FIRST, SECOND), holders)
    assert (free.gpu, told(free)) == (FIRST.pci_address, ("ok", "AsExpected"))
    assert (held.gpu, told(held)) == (SECOND.pci_address, ("problem", "HeldByAgent"))
    assert "dcgm-exporter (process 71, pod pod-uid), nvtop (process 72)" in held.what


def test_instances_that_no_claim_explains() -> None:
    ours, theirs = MigPlacement(9, 0, 4), MigPlacement(9, 4, 4)
    made = tuple(
        MigInstanceFacts(
            gpu=FIRST.pci_address, placement=place, gpu_instance_id=n, compute_instance_id=0, uuid=MigUUID(f"MIG-{n}")
        )
        for n, place in enumerate((ours, theirs))
    )
    gpu = replace(FIRST, mig_enabled=True, instances=made)
    device = PreparedDevice(device_request="gpu", pool="n", device="d", gpu=gpu.pci_address, placement=ours)
    claim = PreparedClaim(namespace="n", name="c", uid=ClaimUID("u"), state=ClaimState.COMPLETED, devices=(device,))
    (finding,) = cards.instances((gpu, SECOND), (claim,))
    assert told(finding) == ("problem", "MadeByOthers")
    assert "no claim: 3g.40gb at 4." in finding.what
    (finding,) = cards.instances((replace(gpu, instances=made[:1]),), (claim,))
    assert told(finding) == ("ok", "AsExpected")


OFFERS = {
    "none": (Offers(amounts={"cpu": "8", "memory": "64Gi"}), ("ok", "AsExpected")),
    "NVIDIA's": (Offers(amounts={"nvidia.com/gpu": "8"}), ("problem", "DevicePlugin")),
    "MIG": (Offers(amounts={"nvidia.com/mig-3g.40gb": "2"}), ("problem", "DevicePlugin")),
    "AMD's": (Offers(amounts={"amd.com/gpu": "4"}), ("problem", "DevicePlugin")),
    "gone, and not forgotten yet": (Offers(amounts={"nvidia.com/gpu": "0"}), ("ok", "AsExpected")),
    "something else": (Offers(amounts={"example.com/fpga": "1"}), ("ok", "AsExpected")),
    "the name of a class": (
        Offers(amounts={"example.com/fpga": "1"}, names=frozenset({"example.com/fpga"})),
        ("problem", "DevicePlugin"),
    ),
    "not known": (Offers(), ("unknown", "NotSeen")),
}


@pytest.mark.parametrize(("seen", "expected"), OFFERS.values(), ids=OFFERS)
def test_device_plugins(seen: Offers, expected: Told) -> None:
    assert told(cards.plugins(seen)) == expected


def test_a_device_plugin_is_told_with_amount_socket_and_class() -> None:
    seen = Offers(amounts={"a.b/gpu": "8"}, names=frozenset({"a.b/gpu"}), sockets=("x.sock",))
    assert cards.plugins(seen).what == (
        "A device plugin offers a.b/gpu: 8 (sockets: x.sock); a DeviceClass serves a.b/gpu too."
    )


FINDINGS = (
    ok("KernelSupported", "Linux 6.8."),
    Finding(
        check="FreeOfAgents", verdict=Verdict.PROBLEM, reason="HeldByAgent", what="Held.", why="It blocks.",
        next_step="End it.", gpu=PciAddress("0000:18:00.0"),
    ),
    Finding(check="VfioPossible", verdict=Verdict.NOTE, reason="IommuOff", what="Off.", next_step="Boot."),
)  # fmt: skip


def test_a_report_tells_problems_first() -> None:
    assert report.text(FINDINGS) == (
        "[PROBLEM] FreeOfAgents: Held.\n    why:  It blocks.\n    next: End it.\n"
        "[note] VfioPossible: Off.\n    next: Boot.\n"
        "[ok] KernelSupported: Linux 6.8.\n"
    )


def test_a_report_for_programs() -> None:
    assert json.loads(report.as_json(FINDINGS[1:2])) == [
        {
            "check": "FreeOfAgents", "verdict": "problem", "reason": "HeldByAgent", "what": "Held.",
            "why": "It blocks.", "nextStep": "End it.", "gpu": "0000:18:00.0",
        }
    ]  # fmt: skip


def test_only_problems_count() -> None:
    assert [has_problem(part) for part in (FINDINGS, FINDINGS[:1], FINDINGS[2:])] == [True, False, False]
    assert [each.check for each in about(FINDINGS, PciAddress("0000:19:00.0"))] == ["KernelSupported", "VfioPossible"]
