"""From wanted to existing slices: what is created, updated and deleted, and when the generation is raised."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra.objects import (
    CapacityRequestPolicy,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceTaint,
    OwnerReference,
    ResourceSlice,
)
from dra.slices import Changes, PoolContent, SliceContent, changes, dropped_fields, slice_name

OWNER = OwnerReference(api_version="v1", kind="Node", name="node-1", uid="n-1", controller=True)
TAINT = DeviceTaint(key="gpu.portico.dev/unclean", effect="NoSchedule")


def device(name: str, *taints: DeviceTaint, memory: str = "80Gi", **more: object) -> Device:
    capacity = {"memory": DeviceCapacity(value=memory, request_policy=CapacityRequestPolicy(default="0"))}
    return Device(name=name, capacity=capacity, taints=taints, **more)  # type: ignore[arg-type]


def card(index: int, *taints: DeviceTaint, memory: str = "80Gi") -> SliceContent:
    return SliceContent(index=0x100 + index, devices=(device(f"gpu-{index}", *taints, memory=memory),))


def counters(**values: str) -> SliceContent:
    named = {name.replace("_", "-"): Counter(value=value) for name, value in values.items()}
    return SliceContent(index=0, shared_counters=(CounterSet(name="gpu-0", counters=named),))


def pool(*slices: SliceContent, owner: OwnerReference = OWNER) -> PoolContent:
    return PoolContent(driver="gpu.portico.dev", node="node-1", owner=owner, slices=slices)


class Server:
    """An API server's memory of slices: what it does with changes, as far as these rules are concerned."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self._version = 0

    @property
    def existing(self) -> tuple[ResourceSlice, ...]:
        return tuple(self.slices.values())

    def settle(self, wanted: PoolContent) -> Changes:
        found = changes(wanted, self.existing)
        self.write(found)
        return found

    def write(self, found: Changes, most: int = 1000) -> None:
        """Do at most so many of the changes, as a publisher does that dies in between."""
        for gone in found.delete[:most]:
            del self.slices[gone.metadata.name]
        for each in (*found.create, *found.update)[: max(most - len(found.delete), 0)]:
            self._put(each)

    def _put(self, each: ResourceSlice) -> None:
        self._version += 1
        before = self.slices.get(each.metadata.name)
        assert (before.metadata.resource_version if before else "") == each.metadata.resource_version
        metadata = msgspec.structs.replace(
            each.metadata, uid=f"u-{each.metadata.name}", resource_version=str(self._version)
        )
        devices = tuple(msgspec.structs.replace(d, taints=tuple(map(self._timed, d.taints))) for d in each.spec.devices)
        spec = msgspec.structs.replace(each.spec, devices=devices)
        self.slices[each.metadata.name] = msgspec.structs.replace(each, metadata=metadata, spec=spec)

    def _timed(self, taint: DeviceTaint) -> DeviceTaint:
        return msgspec.structs.replace(taint, time_added=taint.time_added or f"2026-10-01T00:00:{self._version:02}Z")

    def generations(self) -> list[int]:
        return [s.spec.pool.generation for s in self.existing]


@pytest.fixture
def server() -> Server:
    """With a published pool of counters and two cards."""
    made = Server()
    made.settle(pool(counters(memory="80Gi"), card(0), card(1)))
    return made


def test_first_publish_is_generation_1() -> None:
    server = Server()
    found = server.settle(pool(counters(memory="80Gi"), card(0)))
    assert [s.metadata.name for s in found.create] == [
        "00000-gpu.portico.dev-node-1",
        "00100-gpu.portico.dev-node-1",
    ]
    assert (found.update, found.delete) == ((), ())
    assert server.generations() == [1, 1]
    first = found.create[0]
    assert (first.spec.driver, first.spec.node_name, first.spec.pool.name) == ("gpu.portico.dev", "node-1", "node-1")
    assert first.spec.pool.resource_slice_count == 2
    assert first.metadata.owner_references == (OWNER,)


def test_nothing_to_do(server: Server) -> None:
    assert not changes(pool(counters(memory="80Gi"), card(0), card(1)), server.existing)


def test_another_spelling_of_a_quantity_is_no_change(server: Server) -> None:
    assert not changes(pool(counters(memory="81920Mi"), card(0), card(1, memory="81920Mi")), server.existing)


def test_one_changed_slice_keeps_the_generation(server: Server) -> None:
    found = server.settle(pool(counters(memory="80Gi"), card(0, TAINT), card(1)))
    assert [s.metadata.name for s in found.update] == ["00100-gpu.portico.dev-node-1"]
    assert (found.create, found.delete) == ((), ())
    assert server.generations() == [1, 1, 1]


def test_two_changed_slices_raise_it_on_all(server: Server) -> None:
    found = server.settle(pool(counters(memory="80Gi"), card(0, TAINT), card(1, TAINT)))
    assert len(found.update) == 3
    assert server.generations() == [2, 2, 2]


def test_a_new_slice_raises_it_and_the_count(server: Server) -> None:
    found = server.settle(pool(counters(memory="80Gi"), card(0), card(1), card(2)))
    assert ([s.metadata.name for s in found.create], len(found.update)) == (["00102-gpu.portico.dev-node-1"], 3)
    assert server.generations() == [2, 2, 2, 2]
    assert {s.spec.pool.resource_slice_count for s in server.existing} == {4}


def test_a_removed_slice_is_deleted_with_what_was_seen_of_it(server: Server) -> None:
    before = server.slices["00101-gpu.portico.dev-node-1"]
    found = server.settle(pool(counters(memory="80Gi"), card(0)))
    assert found.delete == (before,)
    assert before.metadata.uid
    assert server.generations() == [2, 2]


def test_updates_carry_the_resource_version_that_was_seen(server: Server) -> None:
    (changed,) = changes(pool(counters(memory="80Gi"), card(0, TAINT), card(1)), server.existing).update
    seen = server.slices[changed.metadata.name].metadata
    assert (changed.metadata.uid, changed.metadata.resource_version) == (seen.uid, seen.resource_version)


def test_slices_that_the_kubelet_deleted_come_back(server: Server) -> None:
    server.slices.clear()
    server.settle(pool(counters(memory="80Gi"), card(0), card(1)))
    assert server.generations() == [1, 1, 1]


def test_a_new_node_of_the_same_name_owns_its_slices(server: Server) -> None:
    again = msgspec.structs.replace(OWNER, uid="n-2")
    server.settle(pool(counters(memory="80Gi"), card(0), card(1), owner=again))
    assert {s.metadata.owner_references for s in server.existing} == {(again,)}


def test_slices_of_an_older_naming_are_replaced(server: Server) -> None:
    (old,) = (s for s in server.existing if s.metadata.name.startswith("00100"))
    odd = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, name="gpu-node-1-x7f2k"))
    server.slices[odd.metadata.name] = odd
    assert changes(pool(counters(memory="80Gi"), card(0), card(1)), server.existing).delete == (odd,)


def test_the_time_of_a_taint_is_kept(server: Server) -> None:
    server.settle(pool(counters(memory="80Gi"), card(0, TAINT), card(1)))
    (before,) = server.slices["00100-gpu.portico.dev-node-1"].spec.devices[0].taints
    assert not changes(pool(counters(memory="80Gi"), card(0, TAINT), card(1)), server.existing)
    server.settle(pool(counters(memory="80Gi"), card(0, TAINT, memory="79Gi"), card(1)))
    assert server.slices["00100-gpu.portico.dev-node-1"].spec.devices[0].taints == (before,)


def test_another_taint_has_its_own_time(server: Server) -> None:
    server.settle(pool(counters(memory="80Gi"), card(0, TAINT), card(1)))
    other = msgspec.structs.replace(TAINT, value="again")
    (found,) = changes(pool(counters(memory="80Gi"), card(0, other), card(1)), server.existing).update
    assert found.spec.devices[0].taints == (other,)


def test_counters_are_what_is_wanted(server: Server) -> None:
    """Who draws on them is not known here: see `nodedriver.keeping`."""
    content = pool(counters(memory="79Gi", decoders="7"), card(0), card(1))
    server.settle(content)
    (found,) = server.slices["00000-gpu.portico.dev-node-1"].spec.shared_counters
    assert {name: counter.value for name, counter in found.counters.items()} == {"memory": "79Gi", "decoders": "7"}
    assert not changes(content, server.existing)


def test_name_order_is_index_order_and_names_fit() -> None:
    names = [slice_name(index, "gpu.portico.dev", "node-1") for index in (0, 1, 0x0FF, 0x100, 0x1FF)]
    assert names == sorted(names)
    long = slice_name(0x100, "d" * 63, "n" * 253)
    assert len(long) <= 253
    assert long.startswith("00100-ddd")
    assert long != slice_name(0x100, "d" * 63, "n" * 252)


def sent_slice() -> ResourceSlice:
    shared = device("gpu-0", TAINT, allow_multiple_allocations=True, attributes={"a": DeviceAttribute(string="")})
    return changes(pool(SliceContent(index=0x100, devices=(shared,))), ()).create[0]


def received(**changed: object) -> ResourceSlice:
    sent = sent_slice()
    spec = msgspec.structs.replace(
        sent.spec, devices=(msgspec.structs.replace(sent.spec.devices[0], **changed),)
    )  # fmt: skip
    return msgspec.structs.replace(sent, spec=spec)


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        (received(), ()),
        (received(taints=(msgspec.structs.replace(TAINT, time_added="2026-10-01T00:00:00Z"),)), ()),
        (received(capacity={"memory": DeviceCapacity(value="81920Mi", request_policy=CapacityRequestPolicy(
            default="0"))}), ()),
        (received(taints=()), ("spec.devices.taints",)),
        (received(allow_multiple_allocations=False, capacity={"memory": DeviceCapacity(value="80Gi")}),
         ("spec.devices.allowMultipleAllocations", "spec.devices.capacity.memory.requestPolicy")),
    ],
    ids=["kept", "time set by the server", "other spelling", "taints dropped", "shares dropped"],
)  # fmt: skip
def test_dropped_fields_are_named(kept: ResourceSlice, dropped: tuple[str, ...]) -> None:
    assert dropped_fields(sent_slice(), kept) == dropped


contents = st.builds(
    lambda first, cards: pool(
        *([counters(memory=first)] if first else []),
        *(
            replace(card(i, memory=size), devices=(device(f"gpu-{i}", memory=size),))
            for i, size in sorted(cards.items())
        ),
    ),
    st.sampled_from(["", "80Gi", "79Gi"]),
    st.dictionaries(st.integers(0, 4), st.sampled_from(["80Gi", "40Gi"]), min_size=1),
)


@given(st.lists(st.tuples(contents, st.integers(0, 6)), max_size=5), contents)
def test_interrupted_publishing_ends_in_one_whole_pool(
    history: list[tuple[PoolContent, int]], last: PoolContent
) -> None:
    """However earlier writes were cut short, the next one ends in exactly the wanted slices of one generation."""
    server = Server()
    for wanted, done in history:
        server.write(changes(wanted, server.existing), most=done)
    server.settle(last)
    assert len(set(server.generations())) == 1
    assert {s.spec.pool.resource_slice_count for s in server.existing} == {len(last.slices)}
    assert sorted(server.slices) == [slice_name(s.index, last.driver, last.node) for s in last.slices]
    assert not changes(last, server.existing)


@given(st.lists(contents, min_size=2, max_size=6))
def test_no_reader_sees_half_a_change(history: list[PoolContent]) -> None:
    """After each single write the slices of the highest generation are incomplete, or are one wanted content."""
    server = Server()
    for wanted in history:
        before = {s.metadata.name: s.spec.devices for s in server.existing}
        found = changes(wanted, server.existing)
        after = {slice_name(s.index, wanted.driver, wanted.node): s.devices for s in wanted.slices}
        steps = [Changes(delete=(s,)) for s in found.delete] + [
            Changes(create=(s,)) for s in (*found.create, *found.update)
        ]
        for step in steps:
            server.write(step)
            newest = max(server.generations(), default=0)
            seen = [s for s in server.existing if s.spec.pool.generation == newest]
            complete = all(s.spec.pool.resource_slice_count == len(seen) for s in seen)
            assert not complete or {s.metadata.name: s.spec.devices for s in seen} in ({}, before, after)
