"""Wire JSON to structs and back: what is read, what an unknown field does, what a wrong one says."""

from __future__ import annotations

import msgspec
import pytest

from dra.errors import InvalidObjectError
from dra.objects import Device, DeviceAttribute, ResourceClaim, ResourceSlice, decode, encode

SLICE = b"""{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
"metadata": {"name": "s", "resourceVersion": "7"}, "spec":
{"driver": "gpu.example.com", "nodeName": "node-a", "pool": {"name": "node-a", "generation": 3,
"resourceSliceCount": 2}, "fieldOfTheFuture": {"x": 1}, "devices": [{"name": "gpu-0",
"attributes": {"index": {"int": 0}, "healthy": {"bool": false}, "model": {"string": ""}, "links": {"ints": [1, 2]}},
"capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "0", "validRange": {"min": "0"}}}},
"consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
"taints": [{"key": "k", "effect": "NoSchedule"}], "allowMultipleAllocations": true}]}}"""

CLAIM = b"""{"metadata": {"name": "c", "namespace": "ml-team", "uid": "u-1"}, "spec": {"devices": {"requests": [
{"name": "gpu", "exactly": {"deviceClassName": "h100", "capacity": {"requests": {"sharePercent": "25"}}}}]}},
"status": {"allocation": {"devices": {"results": [{"request": "gpu/half", "driver": "d", "pool": "p", "device": "gpu-0",
"shareID": "s-1", "consumedCapacity": {"sharePercent": "25"}}], "config": [{"source": "FromClass", "requests": ["gpu"],
"opaque": {"driver": "d", "parameters": {"kind": "GpuConfig"}}}]}}, "reservedFor": [
{"resource": "pods", "name": "pod-0", "uid": "u-2"}]}}"""


def test_a_slice_is_read_and_a_field_of_the_future_is_no_error() -> None:
    slice_ = decode(SLICE, ResourceSlice)
    device = slice_.spec.devices[0]

    assert (slice_.spec.pool.generation, slice_.spec.pool.resource_slice_count) == (3, 2)
    assert [device.attributes[name].value for name in ("index", "healthy", "model", "links")] == [0, False, "", (1, 2)]
    assert device.capacity["memory"].request_policy is not None
    assert device.consumes_counters[0].counters["memory"].value == "80Gi"
    assert device.allow_multiple_allocations


def test_a_resource_claim_is_read_with_its_share() -> None:
    claim = decode(CLAIM, ResourceClaim)
    assert claim.status.allocation is not None
    result = claim.status.allocation.devices.results[0]

    assert (claim.ref.namespace, claim.ref.name, claim.ref.uid) == ("ml-team", "c", "u-1")
    assert (result.device_request, result.share_id, result.consumed_capacity) == ("gpu", "s-1", {"sharePercent": "25"})
    assert claim.status.reserved_for[0].name == "pod-0"


@pytest.mark.parametrize("kind", [ResourceSlice, ResourceClaim])
def test_what_is_written_is_what_was_read(kind: type[ResourceSlice | ResourceClaim]) -> None:
    body = SLICE if kind is ResourceSlice else CLAIM
    known = msgspec.json.decode(body)
    known["spec"].pop("fieldOfTheFuture", None)

    written = msgspec.json.decode(encode(decode(body, kind)))

    assert written["spec"] == known["spec"]
    assert written.get("status", {}) == known.get("status", {})


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"metadata": {}, "spec": {"driver": "d"}}', "ResourceSlice: Object missing required field `pool`"),
        (b'{"metadata": {}, "spec": {"driver": 1, "pool": {}}}', "Expected `str`, got `int`"),
        (b"{", "ResourceSlice: Input data was truncated"),
    ],
)
def test_a_wrong_object_names_the_kind_and_the_field(body: bytes, where: str) -> None:
    with pytest.raises(InvalidObjectError, match=where):
        decode(body, ResourceSlice)


def test_an_attribute_is_found_with_and_without_the_drivers_domain() -> None:
    device = Device(
        name="gpu-0",
        attributes={"a": DeviceAttribute(int_=0), "gpu.example.com/b": DeviceAttribute(string="x")},
    )

    assert device.attribute("gpu.example.com", "a") == 0
    assert device.attribute("gpu.example.com", "b") == "x"
    assert device.attribute("gpu.example.com", "c") is None
