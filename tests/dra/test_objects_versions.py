"""Objects of every version that is read have the shape of v1."""

from __future__ import annotations

import json

import pytest

from dra.errors import InvalidObjectError, UnreadKindError
from dra.objects import DeviceTaintRule, Pod, ResourceClaim, ResourceClaimTemplate, ResourceQuota, ResourceSlice
from dra.objects.versions import read

DEVICE = {
    "attributes": {"index": {"int": 0}},
    "capacity": {"memory": {"value": "80Gi"}},
    "allowMultipleAllocations": True,
}
EXACTLY = {"deviceClassName": "gpu", "count": 2, "selectors": [{"cel": {"expression": "true"}}]}
ALTERNATIVES = {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]}


def body(api_version: str, kind: str, spec: object) -> bytes:
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}).encode()


def slice_spec(device: object) -> dict[str, object]:
    pool = {"name": "p", "resourceSliceCount": 1}
    return {"driver": "gpu.example.com", "pool": pool, "nodeName": "n", "devices": [device]}


@pytest.mark.parametrize(
    ("version", "device"),
    [
        ("v1", {"name": "d", **DEVICE}),
        ("v1beta2", {"name": "d", **DEVICE}),
        ("v1beta1", {"name": "d", "basic": DEVICE}),
    ],
)
def test_a_device_has_its_contents_beside_its_name(version: str, device: object) -> None:
    slice_ = read(body(f"resource.k8s.io/{version}", "ResourceSlice", slice_spec(device)))
    assert isinstance(slice_, ResourceSlice)
    read_device = slice_.spec.devices[0]

    assert (slice_.api_version, read_device.name) == ("resource.k8s.io/v1", "d")
    assert (read_device.attribute("gpu.example.com", "index"), read_device.capacity["memory"].value) == (0, "80Gi")
    assert read_device.allow_multiple_allocations


@pytest.mark.parametrize(
    ("version", "request_"),
    [
        ("v1", {"name": "one", "exactly": EXACTLY}),
        ("v1beta2", {"name": "one", "exactly": EXACTLY}),
        ("v1beta1", {"name": "one", **EXACTLY}),
    ],
)
def test_a_device_request_has_exactly_or_alternatives(version: str, request_: object) -> None:
    claim = {"devices": {"requests": [request_, ALTERNATIVES]}}
    resource_claim = read(body(f"resource.k8s.io/{version}", "ResourceClaim", claim))
    template = read(body(f"resource.k8s.io/{version}", "ResourceClaimTemplate", {"spec": claim}))
    assert isinstance(resource_claim, ResourceClaim)
    assert isinstance(template, ResourceClaimTemplate)
    one, either = resource_claim.spec.devices.requests

    assert template.spec.spec == resource_claim.spec
    assert one.exactly is not None
    assert (one.exactly.device_class_name, one.exactly.count) == ("gpu", 2)
    assert one.exactly.selectors[0].cel is not None
    assert (either.exactly, [sub.name for sub in either.first_available]) == (None, ["big"])


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1alpha3"])
def test_a_taint_rule_has_one_shape_since_1_35(version: str) -> None:
    spec = {"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoExecute"}}
    rule = read(body(f"resource.k8s.io/{version}", "DeviceTaintRule", spec))
    assert isinstance(rule, DeviceTaintRule)

    assert rule.spec.device_selector is not None
    assert (rule.spec.device_selector.driver, rule.spec.device_selector.pool, rule.spec.taint.key) == ("d", None, "k")


@pytest.mark.parametrize("field", [{"deviceClassName": "gpu"}, {"selectors": [{"cel": {"expression": "false"}}]}])
def test_a_taint_rule_that_selects_by_more_than_v1_can_say_is_refused(field: dict[str, object]) -> None:
    spec = {"deviceSelector": {"driver": "d", **field}, "taint": {"key": "k", "effect": "NoExecute"}}

    with pytest.raises(InvalidObjectError, match=f"/spec/deviceSelector/{next(iter(field))}"):
        read(body("resource.k8s.io/v1alpha3", "DeviceTaintRule", spec))


def test_core_kinds_are_read_too() -> None:
    pod = read(body("v1", "Pod", {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}))
    quota = read(body("v1", "ResourceQuota", {"hard": {"gpu.deviceclass.resource.k8s.io/devices": 4}}))
    assert isinstance(pod, Pod)
    assert isinstance(quota, ResourceQuota)

    assert pod.spec.resource_claims[0].resource_claim_template_name == "t"
    assert quota.spec.hard == {"gpu.deviceclass.resource.k8s.io/devices": "4"}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "ConfigMap"), ("resource.k8s.io/v1alpha2", "ResourceClaim"), ("resource.k8s.io/v1", "Pod"), ("", "")],
)
def test_a_kind_that_is_not_read_is_named(api_version: str, kind: str) -> None:
    with pytest.raises(UnreadKindError, match=f"{kind or 'no kind'} of {api_version or 'no version'} is not read"):
        read(body(api_version, kind, {}))


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        (slice_spec({"name": "d", "basic": {"capacity": {"memory": {}}}}), "/spec/devices/0/capacity/memory/value"),
        (slice_spec({"basic": {}}), "/spec/devices/0/name"),
        (slice_spec("d"), "/spec/devices/0"),
        ({"devices": 1}, "/spec/driver"),
        ([], "/spec"),
    ],
)
def test_an_older_version_is_refused_at_a_pointer_of_v1(spec: object, pointer: str) -> None:
    with pytest.raises(InvalidObjectError) as error:
        read(body("resource.k8s.io/v1beta1", "ResourceSlice", spec))

    assert error.value.pointer == pointer
