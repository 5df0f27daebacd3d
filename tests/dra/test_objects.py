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
    ("body", "said"),
    [
        (b'{"metadata": {}, "spec": {"driver": "d"}}', "/spec/pool is required"),
        (b'{"metadata": {}, "spec": {"driver": 1, "pool": {}}}', "/spec/driver is 1, must be a string"),
        (b'{"metadata": {}, "spec": null}', "/spec is required"),
        (b'{"metadata": [], "spec": {}}', "/metadata is [], must be an object"),
        (b"[]", "/ is [], must be an object"),
        (b"{", "no JSON at line 1, column 2"),
        (b'{"metadata":\n  nope}', "no JSON at line 2, column 3"),
        (b'{"metadata": NaN}', "NaN is no JSON value"),
        (b'"\xff"', "no UTF-8 at byte 1"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_wrong_object_names_the_place_the_value_and_the_rule(body: bytes, said: str) -> None:
    with pytest.raises(InvalidObjectError) as error:
        decode(body, ResourceSlice)

    assert said in str(error.value)


@pytest.mark.parametrize(
    ("device", "pointer", "rule"),
    [
        ('{"name": 5}', "/name", "is 5, must be a string"),
        ('{"name": "a\\ud800"}', "/name", "lone surrogates"),
        ('{"name": "d", "attributes": {"a/b": {"int": 1.5}}}', "/attributes/a~1b/int", "is 1.5, must be an integer"),
        ('{"name": "d", "attributes": {"a": {"int": 9223372036854775808}}}', "/attributes/a/int", "64 bits"),
        ('{"name": "d", "attributes": {"a": {"bool": "true"}}}', "/attributes/a/bool", "must be true or false"),
        ('{"name": "d", "attributes": {"a": null}}', "/attributes/a", "must be an object"),
        ('{"name": "d", "capacity": {"memory": {}}}', "/capacity/memory/value", "is required"),
        ('{"name": "d", "capacity": {"memory": "80Gi"}}', "/capacity/memory", "is '80Gi', must be an object"),
        ('{"name": "d", "taints": {"key": "k"}}', "/taints", "must be a list"),
        ('{"name": "d", "taints": [{"key": "k"}]}', "/taints/0/effect", "is required"),
    ],
)
def test_a_pointer_leads_to_what_is_wrong(device: str, pointer: str, rule: str) -> None:
    with pytest.raises(InvalidObjectError, match=rule) as error:
        decode(device.encode(), Device)

    assert error.value.pointer == pointer


def test_null_is_absent_and_a_quantity_may_be_a_number() -> None:
    # as Go clients write what is empty, and as `resource.Quantity` reads JSON
    claim = decode(
        b'{"metadata": {"creationTimestamp": null, "labels": null}, "spec": {"devices": {"requests": null}}}',
        ResourceClaim,
    )
    device = decode(
        b'{"name": "d", "capacity": {"memory": {"value": 1.50}, "cores": {"value": 1e3}}, "taints": null}', Device
    )

    assert (claim.spec.devices.requests, claim.metadata.labels) == ((), {})
    assert {name: capacity.value for name, capacity in device.capacity.items()} == {"memory": "1.50", "cores": "1e3"}
    assert device.taints == ()


def test_an_attribute_is_found_with_and_without_the_drivers_domain() -> None:
    device = Device(
        name="gpu-0",
        attributes={"a": DeviceAttribute(int_=0), "gpu.example.com/b": DeviceAttribute(string="x")},
    )

    assert device.attribute("gpu.example.com", "a") == 0
    assert device.attribute("gpu.example.com", "b") == "x"
    assert device.attribute("gpu.example.com", "c") is None
