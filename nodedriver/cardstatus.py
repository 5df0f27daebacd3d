"""What a PhysicalGPU says of a card: facts, claims, devices and findings to a status. Pure.

Everything is told anew each time; only the times of conditions are taken over, as long as their status stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dra.objects import (
    Condition,
    Device,
    MigProfileCapability,
    PhysicalGPUCapabilities,
    PhysicalGPUHolder,
    PhysicalGPUPublished,
    PhysicalGPUState,
    PhysicalGPUStatus,
    PhysicalGPUTopology,
)
from dra.objects.physicalgpu import CardModeWord, MigModeChangeWord
from dra.quantity import Format, Quantity
from dra.slices import SliceContent
from nodedriver.doctor.findings import Finding, Verdict, about
from nodedriver.facts import (
    CardFacts,
    GpuFacts,
    MigInstanceFacts,
    MigModeChange,
    MigProfileFacts,
    PciAddress,
    PlainCardFacts,
)
from nodedriver.holding import PreparedClaim
from nodedriver.inventory import DeviceRecord

_CHANGES: Mapping[MigModeChange, MigModeChangeWord] = {
    MigModeChange.IMPOSSIBLE: "Impossible",
    MigModeChange.WHEN_IDLE: "WhenIdle",
    MigModeChange.NEEDS_RESET: "NeedsReset",
}
_STATUSES = {Verdict.OK: "True", Verdict.NOTE: "False", Verdict.PROBLEM: "False", Verdict.UNKNOWN: "Unknown"}
_KEEPING_OUT = ("NoSchedule", "NoExecute")
_MOST_MESSAGE = 32768  # characters, metav1.Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """All that is known of a node's cards at one moment."""

    driver_name: str
    pool: str
    cards: tuple[CardFacts, ...]
    claims: tuple[PreparedClaim, ...]
    published: tuple[SliceContent, ...]
    records: Mapping[str, DeviceRecord]
    findings: tuple[Finding, ...] = ()

    def devices_of(self, gpu: PciAddress) -> tuple[Device, ...]:
        """The published devices of that card."""
        devices = (device for each in self.published for device in each.devices)
        return tuple(each for each in devices if each.name in self.records and self.records[each.name].gpu == gpu)


def status_of(view: NodeView, card: CardFacts) -> PhysicalGPUStatus:
    """What the card's object is to say. The times of its conditions are still open (`settled`)."""
    devices = view.devices_of(card.pci_address)
    return PhysicalGPUStatus(
        capabilities=_capabilities(card),
        topology=_topology(card),
        current_state=_state(card, view.claims, resetting=_is_resetting(view.driver_name, devices)),
        published=PhysicalGPUPublished(
            driver=view.driver_name, pool=view.pool, devices=tuple(device.name for device in devices)
        ),
        conditions=(
            _present(card),
            _takes_claims(devices),
            *(_condition(finding) for finding in about(view.findings, card.pci_address)),
        ),
    )


def status_of_gone(view: NodeView, gpu: PciAddress, last: PhysicalGPUStatus) -> PhysicalGPUStatus | None:
    """What is left to say of a card that is not there any more; None once nothing holds it."""
    holders = _holders(gpu, view.claims)
    if not holders:
        return None
    names = ", ".join(f"{holder.namespace}/{holder.name}" for holder in holders)
    gone = Condition(
        type="Present",
        status="False",
        reason="NotFound",
        message=f"GPU {gpu} does not answer any more, and resource claims are prepared on it: {names}. "
        "Look at dmesg (NVRM, pcieport) and reseat or reset the card; end the pods of these claims.",
    )
    others = tuple(each for each in last.conditions if each.type != "Present")
    return PhysicalGPUStatus(
        capabilities=last.capabilities,
        topology=last.topology,
        current_state=PhysicalGPUState(mode=last.current_state.mode, uuid=last.current_state.uuid, held_by=holders),
        published=last.published,
        conditions=(gone, *others),
    )


def settled(conditions: Iterable[Condition], last: Iterable[Condition], now: str) -> tuple[Condition, ...]:
    """The conditions by type, each with the time since when it has had its status (metav1.Condition)."""
    since = {(each.type, each.status): each.last_transition_time for each in last}
    return tuple(
        Condition(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message[:_MOST_MESSAGE],
            last_transition_time=since.get((each.type, each.status)) or now,
        )
        for each in sorted(conditions, key=lambda each: each.type)
    )


def _capabilities(card: CardFacts) -> PhysicalGPUCapabilities:
    if isinstance(card, PlainCardFacts):
        return PhysicalGPUCapabilities(
            vendor=card.vendor,
            product_name=card.product_name,
            memory=_bytes(card.memory) if card.memory else None,
            mig_mode_change="Impossible",
            vfio=False,  # published and prepared as a whole card only
        )
    major, minor = card.compute_capability
    return PhysicalGPUCapabilities(
        vendor="nvidia",
        product_name=card.product_name,
        architecture=card.architecture,
        compute_capability=f"{major}.{minor}",
        memory=_bytes(card.memory),
        mig_mode_change=_CHANGES[card.mig_mode_change],
        mig_profiles=tuple(_profile(profile) for profile in card.profiles),
        vfio=card.vfio is not None,
    )


def _profile(profile: MigProfileFacts) -> MigProfileCapability:
    return MigProfileCapability(
        name=profile.name,
        memory=_bytes(profile.memory),
        compute_slices=profile.compute_slices,
        multiprocessors=profile.multiprocessors,
        max_instances=profile.max_instances,
        memory_slices=max((placement.size for placement in profile.placements), default=0),
        starts=tuple(sorted(placement.start for placement in profile.placements)),
    )


def _topology(card: CardFacts) -> PhysicalGPUTopology:
    near = card.surroundings
    return PhysicalGPUTopology(
        numa_node=card.numa_node,
        pcie_root=card.pcie_root or "",
        nearest_nic=near.nearest_nic or "",
        nearest_nic_link=near.nearest_nic_link.value if near.nearest_nic_link else "",
        nvlink_clique=near.nvlink_clique or "",
        drm_card=near.drm_card,
        drm_render=near.drm_render,
    )


def _state(card: CardFacts, claims: Iterable[PreparedClaim], *, resetting: bool) -> PhysicalGPUState:
    instances = (_instance(card, each) for each in card.instances) if isinstance(card, GpuFacts) else ()
    return PhysicalGPUState(
        mode="Maintenance" if resetting else _mode(card),
        uuid=card.uuid,
        kernel_driver=card.surroundings.kernel_driver,
        driver_version=card.driver_version or "",
        mig_instances=tuple(sorted(instances)),
        held_by=_holders(card.pci_address, claims),
    )


def _is_resetting(driver_name: str, devices: Iterable[Device]) -> bool:
    """Whether it is out of use for a reset; one whose reset failed serves on in its mode (`maintenance.ledger`)."""
    key, value = f"{driver_name}/maintenance", "reset-pending"
    return any((taint.key, taint.value) == (key, value) for device in devices for taint in device.taints or ())


def _mode(card: CardFacts) -> CardModeWord:
    if card.surroundings.kernel_driver.startswith("vfio"):
        return "VFIO"
    return "MIG" if isinstance(card, GpuFacts) and card.mig_enabled else "Whole"


def _instance(card: GpuFacts, instance: MigInstanceFacts) -> str:
    placement = instance.placement
    names = {profile.id: profile.name for profile in card.profiles}
    return f"{names.get(placement.profile_id, f'profile {placement.profile_id}')}@{placement.start}"


def _holders(gpu: PciAddress, claims: Iterable[PreparedClaim]) -> tuple[PhysicalGPUHolder, ...]:
    held = ((claim, tuple(d.device for d in claim.devices if d.gpu == gpu)) for claim in claims)
    return tuple(
        PhysicalGPUHolder(namespace=claim.namespace, name=claim.name, uid=claim.uid, devices=devices)
        for claim, devices in sorted(held, key=lambda each: each[0].uid)
        if devices
    )


def _present(card: CardFacts) -> Condition:
    return Condition(type="Present", status="True", reason="Answers", message=f"GPU {card.pci_address} answers")


def _takes_claims(devices: tuple[Device, ...]) -> Condition:
    """Whether a device of the card can be allocated, as the taints have it."""
    kept = {f"{t.key}={t.value}:{t.effect}" for d in devices for t in d.taints or () if t.effect in _KEEPING_OUT}
    free = [d for d in devices if not any(taint.effect in _KEEPING_OUT for taint in d.taints or ())]
    words = f"{len(free)} of {len(devices)} devices take claims"
    if kept:
        words += f"; tainted: {', '.join(sorted(kept))}"
    reason = "Tainted" if kept else "NotTainted" if devices else "NotPublished"
    return Condition(type="TakesClaims", status="True" if free else "False", reason=reason, message=words)


def _condition(finding: Finding) -> Condition:
    return Condition(
        type=finding.check, status=_STATUSES[finding.verdict], reason=finding.reason, message=finding.sentence
    )


def _bytes(amount: int) -> str:
    return str(Quantity.of(amount, Format.BINARY_SI))
