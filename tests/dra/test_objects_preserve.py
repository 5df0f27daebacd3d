"""What is written back changes only what was meant to change."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dra.errors import InvalidObjectError
from dra.objects import DeviceTaint, DeviceTaintRule, ResourceClaim, ResourceSlice, decode
from dra.objects.preserve import write_back

SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "managedFields": [{"manager": "driver"}], "labels": {"a": "1"}},
    "spec": {
        "driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 0, "epoch": 7},
        "devices": [
            {"name": "a", "color": "red", "attributes": {"x": {"int": 1, "unit": "m"}},
             "taints": [{"key": "k", "effect": "None", "why": "w"}]},
            {"name": "b", "color": "blue", "attributes": None, "capacity": {"memory": {"value": 5}}},
            {"name": "c", "color": "green"},
        ],
    },
}  # fmt: skip


def written(plain: dict[str, Any], change: Any) -> Any:
    original = json.dumps(plain).encode()
    before = decode(original, ResourceSlice)
    return json.loads(write_back(original, before, change(before)))


def with_devices(slice_: ResourceSlice, *order: int) -> ResourceSlice:
    devices = tuple(slice_.spec.devices[index] for index in order)
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices))


def test_nothing_changed_is_the_original() -> None:
    assert written(SLICE, lambda slice_: slice_) == SLICE


def test_a_changed_field_leaves_its_neighbours() -> None:
    pool = {"name": "p", "resourceSliceCount": 2, "generation": 0, "epoch": 7}

    def grown(slice_: ResourceSlice) -> ResourceSlice:
        bigger = msgspec.structs.replace(slice_.spec.pool, resource_slice_count=2)
        return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, pool=bigger))

    assert written(SLICE, grown) == SLICE | {"spec": SLICE["spec"] | {"pool": pool}}


def test_named_entries_keep_what_is_theirs_when_the_list_moves() -> None:
    kept = written(SLICE, lambda slice_: with_devices(slice_, 2, 0))["spec"]["devices"]

    assert kept == [SLICE["spec"]["devices"][2], SLICE["spec"]["devices"][0]]


def test_a_new_entry_and_a_change_in_an_old_one() -> None:
    def tainted(slice_: ResourceSlice) -> ResourceSlice:
        first = slice_.spec.devices[0]
        taints = (*first.taints, DeviceTaint(key="new", effect="NoSchedule"))
        devices = (msgspec.structs.replace(first, taints=taints), *slice_.spec.devices[1:])
        return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices))

    first, second, third = written(SLICE, tainted)["spec"]["devices"]

    assert first["taints"] == [{"key": "k", "effect": "None", "why": "w"}, {"key": "new", "effect": "NoSchedule"}]
    assert (first["color"], first["attributes"]) == ("red", {"x": {"int": 1, "unit": "m"}})
    assert [second, third] == SLICE["spec"]["devices"][1:]


def test_an_unset_field_is_taken_out_and_unknown_ones_stay() -> None:
    def bare(slice_: ResourceSlice) -> ResourceSlice:
        first = msgspec.structs.replace(slice_.spec.devices[0], taints=(), attributes={})
        devices = (first, *slice_.spec.devices[1:])
        return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices))

    assert written(SLICE, bare)["spec"]["devices"][0] == {"name": "a", "color": "red"}


def test_two_shares_of_one_device_are_told_apart() -> None:
    status = {"driver": "d", "pool": "p", "device": "x", "conditions": []}
    devices = [{**status, "shareID": "1", "mark": "one"}, {**status, "shareID": "2", "mark": "two"}]
    original = json.dumps({"metadata": {"name": "c"}, "status": {"devices": devices}}).encode()
    before = decode(original, ResourceClaim)
    after = msgspec.structs.replace(
        before, status=msgspec.structs.replace(before.status, devices=before.status.devices[1:])
    )

    assert json.loads(write_back(original, before, after))["status"]["devices"] == devices[1:]


def test_a_version_that_has_the_shape_of_v1_keeps_its_name() -> None:
    plain = {
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "r"},
        "spec": {"taint": {"key": "k", "effect": "None"}, "deviceSelector": {"driver": "d", "future": True}},
    }  # fmt: skip
    original = json.dumps(plain).encode()
    before = decode(original, DeviceTaintRule)
    taint = msgspec.structs.replace(before.spec.taint, effect="NoSchedule")
    after = msgspec.structs.replace(before, spec=msgspec.structs.replace(before.spec, taint=taint))
    expected = {**plain, "spec": {**plain["spec"], "taint": {"key": "k", "effect": "NoSchedule"}}}  # type: ignore[dict-item]

    assert json.loads(write_back(original, before, after)) == expected


@pytest.mark.parametrize("original", [b"", b"[]", b"{", b"[" * 100_000])
def test_an_original_that_is_no_object_is_refused(original: bytes) -> None:
    rule = DeviceTaintRule.__name__
    before = decode(b'{"metadata": {}, "spec": {"taint": {"key": "k", "effect": "None"}}}', DeviceTaintRule)

    with pytest.raises(InvalidObjectError, match=f"{rule}: the original is no JSON"):
        write_back(original, before, before)
