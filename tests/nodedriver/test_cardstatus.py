"""What a PhysicalGPU says: capabilities, state, holders, what was published, and conditions with their times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dra.names import ClaimUID
from dra.objects import Condition, DeviceTaint, PhysicalGPUHolder, PhysicalGPUStatus
from nodedriver.cardmodes import CardMode
from nodedriver.cardstatus import NodeView, settled, status_of, status_of_gone
from nodedriver.doctor.findings import Finding, Verdict
from nodedriver.facts import (
    CardFacts,
    CardSurroundings,
    GpuUUID,
    MigInstanceFacts,
    MigPlacement,
    MigUUID,
    PciAddress,
    PcieLink,
    PlainCardFacts,
    Vendor,
    VfioFacts,
)
from nodedriver.holding import ClaimState, PreparedClaim, PreparedDevice
from nodedriver.inventory import InventoryRules, TaintsOf, no_taints, take_inventory
from nodedriver.locks import Locks
from nodedriver.maintenance.deciding import Kept, Phase
from nodedriver.maintenance.ledger import Ledger
from tests.nodedriver.gpus import card

DRIVER, NODE = "gpu.portico.dev", "node-1"
THREE = MigPlacement(9, 4, 4)  # 3g.40gb of an H100


def view(*cards: CardFacts, claims: tuple[PreparedClaim, ...] = (), findings: tuple[Finding, ...] = (),
         taints: TaintsOf = no_taints) -> NodeView:  # fmt: skip
    inventory = take_inventory(
        InventoryRules(DRIVER), cards, {each.pci_address: rank for rank, each in enumerate(cards)}, taints=taints
    )
    return NodeView(
        driver_name=DRIVER,
        pool=NODE,
        cards=cards,
        claims=claims,
        published=inventory.slices,
        records=inventory.records,
        findings=findings,
    )


def claim(name: str, device: str, gpu: PciAddress, placement: MigPlacement | None = None) -> PreparedClaim:
    held = PreparedDevice(device_request="gpu", pool=NODE, device=device, gpu=gpu, placement=placement)
    return PreparedClaim(
        namespace="ml-team", name=name, uid=ClaimUID(f"uid-{name}"), state=ClaimState.COMPLETED, devices=(held,)
    )


def conditions(status: PhysicalGPUStatus) -> dict[str, tuple[str, str, str]]:
    return {each.type: (each.status, each.reason, each.message) for each in status.conditions}


def test_capabilities_of_an_h100() -> None:
    gpu = card()
    told = status_of(view(gpu), gpu).capabilities
    assert (told.vendor, told.product_name, told.architecture) == ("nvidia", "NVIDIA H100 80GB HBM3", "Hopper")
    assert (told.compute_capability, told.memory, told.mig_mode_change, told.vfio) == (
        "9.0", "81559Mi", "WhenIdle", False,
    )  # fmt: skip
    profiles = {each.name: (each.memory_slices, each.starts) for each in told.mig_profiles}
    assert profiles == {
        "1g.10gb": (1, (0, 1, 2, 3, 4, 5, 6)),
        "1g.10gb+me": (1, (0, 1, 2, 3, 4, 5, 6)),
        "1g.20gb": (2, (0, 2, 4, 6)),
        "2g.20gb": (2, (0, 2, 4)),
        "3g.40gb": (4, (0, 4)),
        "4g.40gb": (4, (0,)),
        "7g.80gb": (8, (0,)),
    }
    three = next(each for each in told.mig_profiles if each.name == "3g.40gb")
    assert (three.compute_slices, three.memory, three.multiprocessors, three.max_instances) == (3, "40448Mi", 60, 2)


def test_topology() -> None:
    near = CardSurroundings(
        drm_card="card1",
        drm_render="renderD128",
        nearest_nic=PciAddress("0000:19:00.0"),
        nearest_nic_link=PcieLink.SAME_SWITCH,
        nvlink_clique=PciAddress("0000:18:00.0"),
    )
    vfio = VfioFacts(vendor_id="0x10de", device_id="0x2330", addressable_memory=2**37, iommufd=True)
    gpu = replace(card(), surroundings=near, vfio=vfio)
    told = status_of(view(gpu), gpu)
    assert told.capabilities.vfio is True
    topology = told.topology
    assert (topology.numa_node, topology.pcie_root) == (1, "pci0000:17")
    assert (topology.nearest_nic, topology.nearest_nic_link) == ("0000:19:00.0", "PIX")
    assert (topology.nvlink_clique, topology.drm_card, topology.drm_render) == ("0000:18:00.0", "card1", "renderD128")


def test_a_card_of_another_vendor() -> None:
    gpu = PlainCardFacts(
        pci_address=PciAddress("0000:a1:00.0"),
        vendor=Vendor.AMD,
        uuid=GpuUUID("amd-1"),
        product_name="AMD Instinct MI300X",
        driver_version=None,
        memory=0,
        numa_node=1,
        pcie_root="pci0000:a0",
        surroundings=CardSurroundings(kernel_driver="amdgpu", drm_render="renderD128"),
    )
    told = status_of(view(gpu), gpu)
    assert (told.capabilities.vendor, told.capabilities.product_name) == ("amd", "AMD Instinct MI300X")
    assert (told.capabilities.memory, told.capabilities.mig_profiles) == (None, ())
    assert (told.topology.numa_node, told.topology.drm_render) == (1, "renderD128")
    assert (told.current_state.mode, told.current_state.kernel_driver) == ("Whole", "amdgpu")
    assert told.published.devices == ("gpu-0",)


@pytest.mark.parametrize(
    ("driver", "mig", "mode"),
    [("nvidia", False, "Whole"), ("nvidia", True, "MIG"), ("vfio-pci", False, "VFIO"), ("vfio-pci", True, "VFIO")],
)
def test_the_mode_is_what_the_kernel_and_nvml_say(driver: str, mig: bool, mode: str) -> None:  # noqa: FBT001
    gpu = replace(card(mig_enabled=mig), surroundings=CardSurroundings(kernel_driver=driver))
    state = status_of(view(gpu), gpu).current_state
    assert (state.mode, state.kernel_driver, state.driver_version) == (mode, driver, "580.65.06")


@pytest.mark.parametrize(("phase", "mode"), [(Phase.WORKING, "Maintenance"), (Phase.FAILED, "Whole")])
def test_a_card_that_is_being_reset_is_in_maintenance(tmp_path: Path, phase: Phase, mode: str) -> None:
    gpu = card("A100-40GB")
    ledger = Ledger(DRIVER, tmp_path / "maintenance.json", "boot", Locks(tmp_path, deadline=1))
    kept = Kept(gpu=gpu.pci_address, target=CardMode.WHOLE, since="2026-07-01T00:00:00Z", phase=phase)
    ledger.keep(gpu.pci_address, kept)
    assert status_of(view(gpu, taints=ledger.taints), gpu).current_state.mode == mode


def test_instances_and_holders_of_this_card_alone() -> None:
    gpu, other = card(bus=0x18), card(bus=0x19)
    instance = MigInstanceFacts(
        gpu=gpu.pci_address, placement=THREE, gpu_instance_id=1, compute_instance_id=0, uuid=MigUUID("MIG-1")
    )
    gpu = replace(gpu, mig_enabled=True, instances=(instance,))
    b, a = claim("b", "gpu-0-mig-3g40gb-4", gpu.pci_address, THREE), claim("a", "gpu-1", other.pci_address)
    state = status_of(view(gpu, other, claims=(b, a)), gpu).current_state
    assert state.mig_instances == ("3g.40gb@4",)
    assert state.held_by == (
        PhysicalGPUHolder(namespace="ml-team", name="b", uid="uid-b", devices=("gpu-0-mig-3g40gb-4",)),
    )


def test_what_was_published_is_this_cards() -> None:
    gpu, other = card(bus=0x18), card(bus=0x19)
    published = status_of(view(gpu, other), other).published
    assert (published.driver, published.pool, len(published.devices)) == (DRIVER, NODE, 26)
    assert {name.split("-mig")[0] for name in published.devices} == {"gpu-1"}


def test_a_card_without_taints_takes_claims() -> None:
    gpu = card()
    assert conditions(status_of(view(gpu), gpu)) == {
        "Present": ("True", "Answers", "GPU 0000:18:00.0 answers"),
        "TakesClaims": ("True", "NotTainted", "26 of 26 devices take claims"),
    }


def test_taints_are_told_with_how_much_is_left() -> None:
    xid = DeviceTaint(key=f"{DRIVER}/xid", value="95", effect="NoSchedule")
    seen = DeviceTaint(key=f"{DRIVER}/xid", value="63", effect="None")
    whole, part, harmless = (
        lambda _gpu, _part: (xid,),
        lambda _gpu, part: (xid,) if part == THREE else (),
        lambda _gpu, _part: (seen,),
    )
    gpu = card()
    told = [conditions(status_of(view(gpu, taints=taints), gpu))["TakesClaims"] for taints in (whole, part, harmless)]
    assert told == [
        ("False", "Tainted", "0 of 26 devices take claims; tainted: gpu.portico.dev/xid=95:NoSchedule"),
        ("True", "Tainted", "25 of 26 devices take claims; tainted: gpu.portico.dev/xid=95:NoSchedule"),
        ("True", "NotTainted", "26 of 26 devices take claims"),
    ]


def test_findings_of_the_node_and_of_the_card_become_conditions() -> None:
    gpu = card()
    findings = (
        Finding(check="CgroupsSupported", verdict=Verdict.OK, reason="V2", what="cgroup v2"),
        Finding(
            check="FreeOfAgents", verdict=Verdict.PROBLEM, reason="Held", what="Held.", why="It blocks.",
            next_step="End it.", gpu=gpu.pci_address,
        ),
        Finding(
            check="FreeOfAgents", verdict=Verdict.OK, reason="Free", what="Free.", gpu=PciAddress("0000:99:00.0")
        ),
        Finding(check="VfioPossible", verdict=Verdict.NOTE, reason="NoIommu", what="No IOMMU."),
        Finding(check="KubeletSupported", verdict=Verdict.UNKNOWN, reason="NotSeen", what="No answer."),
    )  # fmt: skip
    told = conditions(status_of(view(gpu, findings=findings), gpu))
    assert {name: told[name] for name in told if name not in ("Present", "TakesClaims")} == {
        "CgroupsSupported": ("True", "V2", "cgroup v2"),
        "FreeOfAgents": ("False", "Held", "Held. It blocks. End it."),
        "VfioPossible": ("False", "NoIommu", "No IOMMU."),
        "KubeletSupported": ("Unknown", "NotSeen", "No answer."),
    }


def at(type_: str, status: str, time: str | None = None, message: str = "") -> Condition:
    return Condition(type=type_, status=status, reason="R", message=message, last_transition_time=time)


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    last = (at("A", "True", "t1"), at("B", "True", "t1"), at("Gone", "True", "t1"))
    now = (at("C", "True"), at("B", "False"), at("A", "True", message="new words"))
    assert settled(now, last, "t2") == (
        at("A", "True", "t1", "new words"),
        at("B", "False", "t2"),
        at("C", "True", "t2"),
    )


def test_a_card_that_is_gone_is_told_of_while_a_claim_holds_it() -> None:
    gpu = card()
    held = claim("training", "gpu-0", gpu.pci_address)
    last = status_of(view(gpu, claims=(held,)), gpu)
    left = status_of_gone(view(claims=(held,)), gpu.pci_address, last)
    assert left is not None
    assert (left.capabilities, left.published) == (last.capabilities, last.published)
    assert left.current_state.held_by[0].name == "training"
    status, reason, message = conditions(left)["Present"]
    assert (status, reason) == ("False", "NotFound")
    assert "ml-team/training" in message
    assert status_of_gone(view(), gpu.pci_address, last) is None
