"""What allocated ResourceClaims hold: whole devices, shares, consumed capacity. Pure.

Follows the allocated state that kube-scheduler gathers from claims (`schedulerapi.AllocatedState`): admin access holds
nothing, a result with a share ID (an empty one too) is a share, one without takes the whole device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dra.names import ClaimRef, DeviceID
from dra.objects import ResourceClaim
from dra.pools import PoolID
from dra.quantity import parse_quantity


@dataclass(frozen=True, slots=True)
class Holding:
    """One device, or share of it, that a ResourceClaim has. `consumed` in nano units, None where none is recorded."""

    claim: ClaimRef
    device: DeviceID
    share: bool
    consumed: Mapping[str, int] | None


@dataclass(frozen=True)
class PoolUse:
    """All holdings in one pool, by device name."""

    holders: Mapping[str, tuple[Holding, ...]]

    @cached_property
    def whole(self) -> frozenset[str]:
        """Devices that are taken as a whole."""
        return frozenset(name for name, held in self.holders.items() if not all(each.share for each in held))

    @cached_property
    def shared(self) -> frozenset[str]:
        """Devices of which somebody has a share."""
        return frozenset(name for name, held in self.holders.items() if any(each.share for each in held))

    @cached_property
    def consumed(self) -> Mapping[str, Mapping[str, int]]:
        """What shares consume, by device and capacity, in nano units. Absent: no share has anything recorded."""
        return {name: total for name in sorted(self.shared) if (total := _total(self.holders[name])) is not None}

    @cached_property
    def key(self) -> object:
        """Equal where the same devices are in use in the same way, by whomever."""
        consumed = frozenset((name, frozenset(amounts.items())) for name, amounts in self.consumed.items())
        return self.whole, self.shared, consumed

    def without(self, claim: tuple[str, str]) -> PoolUse:
        """The use once the claim of that namespace and name is gone."""
        kept = {name: tuple(each for each in held if not _is_of(each, claim)) for name, held in self.holders.items()}
        return PoolUse({name: held for name, held in kept.items() if held})

    def with_holdings(self, holdings: Iterable[Holding]) -> PoolUse:
        """The use with further holdings, all of this pool."""
        holders = dict(self.holders)
        for each in holdings:
            holders[each.device.device] = (*holders.get(each.device.device, ()), each)
        return PoolUse(holders)


UNUSED: Final = PoolUse({})


def _is_of(holding: Holding, claim: tuple[str, str]) -> bool:
    return (holding.claim.namespace, holding.claim.name) == claim


def _total(held: Iterable[Holding]) -> dict[str, int] | None:
    total: dict[str, int] | None = None
    for each in held:
        if each.share and each.consumed is not None:
            total = {} if total is None else total
            for name, amount in each.consumed.items():
                total[name] = total.get(name, 0) + amount
    return total


def holdings(claim: ResourceClaim, *, shares: bool) -> dict[PoolID, tuple[Holding, ...]]:
    """What an allocated claim holds, by pool; nothing for one that is not allocated.

    `shares` is the gate DRAConsumableCapacity: without it every result takes the whole device.
    """
    found: dict[PoolID, tuple[Holding, ...]] = {}
    if claim.status.allocation is None:
        return found
    for result in claim.status.allocation.devices.results:
        if result.admin_access:
            continue
        share = shares and result.share_id is not None
        amounts = {name: parse_quantity(text).nano for name, text in result.consumed_capacity.items()}
        device = DeviceID(result.driver, result.pool, result.device)
        pool = PoolID(result.driver, result.pool)
        holding = Holding(claim.ref, device, share=share, consumed=amounts if share and amounts else None)
        found[pool] = (*found.get(pool, ()), holding)
    return found
