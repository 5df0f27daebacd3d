"""Grant a wish on one node again and again, as if claims came one after another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dra.allocation import Allocated, NodeView, PoolView, Snapshot
from dra.allocation.use import Holding, holdings
from dra.errors import InvalidObjectError
from dra.objects import ResourceClaim, ResourceClaimStatus
from dra.pools import PoolID


def allocated_claims(claims: Sequence[ResourceClaim], answer: Allocated, mark: str) -> Iterable[ResourceClaim]:
    """The claims with what they were given; the mark in their names sets them apart, and from claims of a cluster."""
    for claim, result in zip(claims, answer.results, strict=True):
        metadata = msgspec.structs.replace(claim.metadata, name=f"{claim.metadata.name}#{mark}")
        yield msgspec.structs.replace(claim, metadata=metadata, status=ResourceClaimStatus(allocation=result))


def granted(view: NodeView, claims: Iterable[ResourceClaim]) -> NodeView:
    """What the node sees once the claims hold what they were given."""
    taken: dict[PoolID, list[Holding]] = {}
    for claim in claims:
        for pool, held in holdings(claim, shares=view.features.consumable_capacity).items():
            taken.setdefault(pool, []).extend(held)
    pools = tuple(_used(pool, taken[pool.id]) if pool.id in taken else pool for pool in view.pools)
    return NodeView(view.node, pools, view.features)


def view_of(snapshot: Snapshot, node: str) -> NodeView | None:
    """What the node sees; None where a malformed node selector of a slice keeps that from being told."""
    try:
        return snapshot.node(node)
    except InvalidObjectError:
        return None


def reaches_others(view: NodeView, answer: Allocated) -> bool:
    """Whether something was given from a pool that other nodes see, too."""
    given = {PoolID(each.driver, each.pool) for result in answer.results for each in result.devices.results}
    return any(pool.id in given and not _is_private(pool, view.name) for pool in view.pools)


def _is_private(pool: PoolView, node_name: str) -> bool:
    gathered = pool.gathered
    slices = (*gathered.slices, *gathered.counter_slices)
    return not gathered.elsewhere and all(each.node_name == node_name for each in slices)


def _used(pool: PoolView, held: Sequence[Holding]) -> PoolView:
    return PoolView(pool.id, pool.gathered, pool.use.with_holdings(held), pool.viewpoint)
