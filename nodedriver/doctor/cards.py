"""Who else is on the cards: processes of no claim, GPU instances of others, device plugins. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from nodedriver.doctor.findings import Finding, Verdict, ok, unknown
from nodedriver.doctor.seen import Holder, Offers
from nodedriver.facts import GpuFacts, MigInstanceFacts
from nodedriver.holding import PreparedClaim

AGENTS, INSTANCES, PLUGINS = "FreeOfAgents", "InstancesKnown", "OfferedOnce"
# What device plugins call our vendors' cards; MIG profiles and shared ones have names of their own.
_CARDS = re.compile(r"(nvidia\.com/(gpu|mig-)|amd\.com/gpu|gpu\.intel\.com/|intel\.com/gpu|gpu\.amd\.com/)")


def agents(cards: Iterable[GpuFacts], holders: Collection[Holder]) -> Iterator[Finding]:
    """One finding a card; `holders` are processes that belong to no claim."""
    for card in cards:
        mine = [holder for holder in holders if holder.gpu == card.pci_address]
        if not mine:
            yield ok(AGENTS, f"Nothing but claims has GPU {card.pci_address} open.", gpu=card.pci_address)
            continue
        yield Finding(
            check=AGENTS,
            verdict=Verdict.PROBLEM,
            reason="HeldByAgent",
            what=f"GPU {card.pci_address} is held by what is no claim's: {', '.join(map(_named, mine))}.",
            why="MIG mode can't change, the card can't be reset or passed through, and its memory is not free.",
            next_step="End it, or keep it off this node; a monitoring agent has to let go of the card on request.",
            gpu=card.pci_address,
        )


def instances(cards: Iterable[GpuFacts], claims: Collection[PreparedClaim]) -> Iterator[Finding]:
    """One finding a card in MIG mode: whether a claim explains each GPU instance."""
    for card in cards:
        if not card.mig_enabled:
            continue
        held = {device.placement for claim in claims for device in claim.devices if device.gpu == card.pci_address}
        others = [instance for instance in card.instances if instance.placement not in held]
        if not others:
            yield ok(INSTANCES, f"Every GPU instance on GPU {card.pci_address} is a claim's.", gpu=card.pci_address)
            continue
        yield Finding(
            check=INSTANCES,
            verdict=Verdict.PROBLEM,
            reason="MadeByOthers",
            what=f"GPU {card.pci_address} has GPU instances of no claim: {_placed(card, others)}.",
            why="The scheduler does not know of them, and devices that overlap them can't be prepared.",
            next_step=f"If nobody needs them, remove them with nvidia-smi mig -i {card.pci_address} -dci, then -dgi.",
            gpu=card.pci_address,
        )


def plugins(seen: Offers) -> Finding:
    """Whether a device plugin offers the same cards, or a name that claims serve (KEP-5004)."""
    if seen.amounts is None:
        return unknown(
            PLUGINS, "What device plugins offer on this node is not known.",
            "Give the doctor a way to the API server (--kubeconfig).",
        )  # fmt: skip
    offered = {name: n for name, n in sorted(seen.amounts.items()) if n != "0"}
    doubled = {name: n for name, n in offered.items() if _CARDS.match(name) or name in seen.names}
    if not doubled:
        return ok(PLUGINS, "No device plugin offers the cards of this node.")
    sockets = f" (sockets: {', '.join(seen.sockets)})" if seen.sockets else ""
    served = [name for name in doubled if name in seen.names]
    return Finding(
        check=PLUGINS,
        verdict=Verdict.PROBLEM,
        reason="DevicePlugin",
        what=f"A device plugin offers {', '.join(f'{name}: {n}' for name, n in doubled.items())}{sockets}"
        + (f"; a DeviceClass serves {', '.join(served)} too." if served else "."),
        why="Both give out the same cards and neither knows of the other, so a card can be given twice.",
        next_step="Keep the device plugin off this node and restart the kubelet, or keep the node driver off it; a "
        "DeviceClass with extendedResourceName serves pods that ask by the old name.",
    )


def _named(holder: Holder) -> str:
    where = f", pod {holder.pod}" if holder.pod else ""
    return f"{holder.name} (process {holder.pid}{where})"


def _placed(card: GpuFacts, others: Iterable[MigInstanceFacts]) -> str:
    names = {profile.id: profile.name for profile in card.profiles}
    places = (instance.placement for instance in others)
    return ", ".join(f"{names.get(each.profile_id, f'profile {each.profile_id}')} at {each.start}" for each in places)
