"""A fleet at one moment: nodes, slices, classes, rules and what is allocated, with parts shared between versions.

`Snapshot.build` reads everything; each `with_...` and `without_...` gives a new snapshot in time that grows with the
number of pools, never of devices, and keeps the views of nodes that the change does not concern. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dra.allocation.shapes import PublishedSlice, compile_slice
from dra.allocation.use import UNUSED, Holding, PoolUse, holdings
from dra.allocation.view import NodeView, PoolView
from dra.allocation.visible import pools_seen
from dra.errors import DraError
from dra.features import Features
from dra.objects import DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice
from dra.pools import PoolID
from dra.taints import rule_concerns

type ClaimKey = tuple[str, str]
"""Namespace and name."""


class UnknownNodeError(DraError):
    """A question about a node that the snapshot does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that allocation reads. Mappings are never changed once a snapshot has them.

    `pools` hold all slices of a pool in the order in which they were listed; `slice_pools` is the pool of each slice;
    `local` the pools with slices of one node, `shared` those with slices of no single node. `views` is a cache that
    `node` fills; each change passes on the views that are still true.
    """

    features: Features
    nodes: Mapping[str, Node]
    classes: Mapping[str, DeviceClass]
    taint_rules: Mapping[str, DeviceTaintRule]
    pools: Mapping[PoolID, tuple[PublishedSlice, ...]]
    slice_pools: Mapping[str, PoolID]
    local: Mapping[str, tuple[PoolID, ...]]
    shared: tuple[PoolID, ...]
    uses: Mapping[PoolID, PoolUse]
    held: Mapping[ClaimKey, Mapping[PoolID, tuple[Holding, ...]]]
    views: dict[str, NodeView] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def build(  # noqa: PLR0913 - each is a list of the cluster
        cls,
        *,
        nodes: Iterable[Node],
        slices: Iterable[ResourceSlice | PublishedSlice],
        classes: Iterable[DeviceClass],
        resource_claims: Iterable[ResourceClaim] = (),
        taint_rules: Iterable[DeviceTaintRule] = (),
        features: Features | None = None,
    ) -> Snapshot:
        """The snapshot of these objects; `features` are those of Kubernetes 1.37 as it comes unless given.

        Of claims only those that are allocated count. InvalidQuantityError where a slice has a malformed amount.
        """
        features = features or Features.of_release("1.37")
        pools = _by_pool(map(published, slices))
        held = {_claim_key(each): holdings(each, shares=features.consumable_capacity) for each in resource_claims}
        return cls(
            features=features,
            nodes={each.metadata.name: each for each in nodes},
            classes={each.metadata.name: each for each in classes},
            taint_rules={each.metadata.name: each for each in taint_rules},
            pools=pools,
            slice_pools={each.name: pool for pool, those in pools.items() for each in those},
            local=_local(pools),
            shared=tuple(pool for pool, those in pools.items() if not all(each.node_name for each in those)),
            uses=_uses(held),
            held={key: those for key, those in held.items() if those},
        )

    def node(self, name: str) -> NodeView:
        """What that node sees, computed once. UnknownNodeError where there is no such node; InvalidObjectError where a
        node selector that it has to be compared with is malformed.
        """
        view = self.views.get(name)
        if view is None:
            view = self.views[name] = self._seen(name)
        return view

    def _seen(self, name: str) -> NodeView:
        node = self.nodes.get(name)
        if node is None:
            raise UnknownNodeError(f"node {name!r} is not among the {len(self.nodes)} nodes of this snapshot")
        candidates = (*self.local.get(name, ()), *self.shared)
        rules = tuple(self.taint_rules.values()) if self.features.device_taint_rules else ()
        seen = pools_seen(node, {pool: self.pools[pool] for pool in candidates}, rules, self.features)
        pools = tuple(PoolView(pool, each, self.uses.get(pool, UNUSED), viewpoint) for pool, each, viewpoint in seen)
        return NodeView(node, pools, self.features)

    def with_node(self, node: Node) -> Snapshot:
        """With this node, in place of one of that name."""
        name = node.metadata.name
        return replace(self, nodes={**self.nodes, name: node}, views=self.views_but({name}))

    def without_node(self, name: str) -> Snapshot:
        """Without the node of that name; its slices stay until they are taken out themselves."""
        nodes = {key: node for key, node in self.nodes.items() if key != name}
        return replace(self, nodes=nodes, views=self.views_but({name}))

    def with_class(self, device_class: DeviceClass) -> Snapshot:
        """With this class, in place of one of that name."""
        return replace(self, classes={**self.classes, device_class.metadata.name: device_class})

    def without_class(self, name: str) -> Snapshot:
        """Without the class of that name."""
        classes = {key: each for key, each in self.classes.items() if key != name}
        return replace(self, classes=classes)

    def with_slice(self, slice_: ResourceSlice | PublishedSlice) -> Snapshot:
        """With this slice, in place of one of that name. InvalidQuantityError where it has a malformed amount."""
        new = published(slice_)
        pool = PoolID(new.driver, new.pool)
        before = self if self.slice_pools.get(new.name, pool) == pool else self.without_slice(new.name)
        listed = before.pools.get(pool, ())
        if new.name in before.slice_pools:
            return _with_pool(before, pool, tuple(new if each.name == new.name else each for each in listed))
        added = _with_pool(before, pool, (*listed, new))
        return replace(added, slice_pools={**added.slice_pools, new.name: pool})

    def without_slice(self, name: str) -> Snapshot:
        """Without the slice of that name; the same snapshot where there is none."""
        pool = self.slice_pools.get(name)
        if pool is None:
            return self
        less = _with_pool(self, pool, tuple(each for each in self.pools[pool] if each.name != name))
        slice_pools = {key: each for key, each in self.slice_pools.items() if key != name}
        return replace(less, slice_pools=slice_pools)

    def with_claim(self, claim: ResourceClaim) -> Snapshot:
        """With what this claim holds in place of what one of that namespace and name held; nothing if not allocated."""
        key = _claim_key(claim)
        new = holdings(claim, shares=self.features.consumable_capacity)
        old = self.held.get(key, {})
        if not new and not old:
            return self
        uses = dict(self.uses)
        for pool in old.keys() | new.keys():
            uses[pool] = uses.get(pool, UNUSED).without(key).with_holdings(new.get(pool, ()))
        held = {**self.held, key: new}
        if not new:
            del held[key]
        touched = (self.pools.get(pool, ()) for pool in old.keys() | new.keys())
        views = self.views_but(_concerned(*touched))
        return replace(self, uses=uses, held=held, views=views)

    def without_claim(self, namespace: str, name: str) -> Snapshot:
        """Without what the claim of that namespace and name held; the same snapshot where it held nothing."""
        old = self.held.get((namespace, name))
        if old is None:
            return self
        uses = {**self.uses, **{pool: self.uses[pool].without((namespace, name)) for pool in old}}
        held = {key: each for key, each in self.held.items() if key != (namespace, name)}
        views = self.views_but(_concerned(*(self.pools.get(pool, ()) for pool in old)))
        return replace(self, uses=uses, held=held, views=views)

    def with_taint_rule(self, rule: DeviceTaintRule) -> Snapshot:
        """With this rule, in place of one of that name."""
        less = self.without_taint_rule(rule.metadata.name)
        return _with_rules(less, {**less.taint_rules, rule.metadata.name: rule}, rule)

    def without_taint_rule(self, name: str) -> Snapshot:
        """Without the rule of that name; the same snapshot where there is none."""
        rule = self.taint_rules.get(name)
        if rule is None:
            return self
        return _with_rules(self, {key: each for key, each in self.taint_rules.items() if key != name}, rule)

    def views_but(self, changed: set[str]) -> dict[str, NodeView]:
        """The views that are still true after a change; "" among the changed nodes means every node."""
        if "" in changed:
            return {}
        views = self.views.copy()
        for name in changed:
            views.pop(name, None)
        return views


def _with_pool(snapshot: Snapshot, pool: PoolID, slices: tuple[PublishedSlice, ...]) -> Snapshot:
    before = snapshot.pools.get(pool, ())
    pools = {**snapshot.pools, pool: slices}
    if not slices:
        del pools[pool]
    changed = replace(snapshot, pools=pools, views=snapshot.views_but(_concerned(before, slices)))
    if _places(before) == _places(slices):
        return changed
    return _relocated(changed, pool, _places(before), _places(slices))


def _relocated(snapshot: Snapshot, pool: PoolID, before: set[str], after: set[str]) -> Snapshot:
    local = dict(snapshot.local)
    for name in (before | after) - {""}:
        kept = tuple(each for each in local.get(name, ()) if each != pool)
        local[name] = (*kept, pool) if name in after else kept
    kept = tuple(each for each in snapshot.shared if each != pool)
    return replace(snapshot, local=local, shared=(*kept, pool) if "" in after else kept)


def _with_rules(snapshot: Snapshot, rules: Mapping[str, DeviceTaintRule], changed: DeviceTaintRule) -> Snapshot:
    touched = (those for pool, those in snapshot.pools.items() if rule_concerns(changed, pool.driver, pool.name))
    return replace(snapshot, taint_rules=rules, views=snapshot.views_but(_concerned(*touched)))


def published(slice_: ResourceSlice | PublishedSlice) -> PublishedSlice:
    """The slice in compiled form."""
    return slice_ if isinstance(slice_, PublishedSlice) else compile_slice(slice_)


def _claim_key(claim: ResourceClaim) -> ClaimKey:
    return claim.metadata.namespace, claim.metadata.name


def _by_pool(slices: Iterable[PublishedSlice]) -> dict[PoolID, tuple[PublishedSlice, ...]]:
    pools: dict[tuple[str, str], list[PublishedSlice]] = {}
    for each in slices:
        pools.setdefault((each.driver, each.pool), []).append(each)
    return {PoolID(*key): tuple(those) for key, those in pools.items()}


def _local(pools: Mapping[PoolID, Sequence[PublishedSlice]]) -> dict[str, tuple[PoolID, ...]]:
    local: dict[str, list[PoolID]] = {}
    for pool, those in pools.items():
        for name in _places(those) - {""}:
            local.setdefault(name, []).append(pool)
    return {name: tuple(those) for name, those in local.items()}


def _uses(held: Mapping[ClaimKey, Mapping[PoolID, tuple[Holding, ...]]]) -> dict[PoolID, PoolUse]:
    by_pool: dict[PoolID, list[Holding]] = {}
    for those in held.values():
        for pool, each in those.items():
            by_pool.setdefault(pool, []).extend(each)
    return {pool: UNUSED.with_holdings(each) for pool, each in by_pool.items()}


def _places(slices: Iterable[PublishedSlice]) -> set[str]:
    """Nodes that the slices name; "" where one names none."""
    return {each.node_name for each in slices}


def _concerned(*pools: Iterable[PublishedSlice]) -> set[str]:
    """Nodes whose view the pools are part of; "" for all of them."""
    return {name for each in pools for name in _places(each)}
