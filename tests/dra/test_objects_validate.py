"""What the API server would refuse, one rule a row: the object is right but for the one thing that the row changes.

The rules were read in pkg/apis/resource/validation/validation.go of Kubernetes 1.37.2.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra.objects import Node, Pod, ResourceQuota
from dra.objects.validate import Checked, faults
from dra.objects.versions import read

SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-a-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-a",
        "pool": {"name": "node-a", "resourceSliceCount": 1},
        "devices": [
            {
                "name": "gpu-0",
                "allowMultipleAllocations": True,
                "attributes": {"model": {"string": "H100"}, "driver": {"version": "1.2.3"}},
                "capacity": {
                    "memory": {
                        "value": "80Gi",
                        "requestPolicy": {"default": "10Gi", "validRange": {"min": "0", "max": "40Gi", "step": "5Gi"}},
                    },
                    "slots": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2", "4"]}},
                },
                "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "80Gi"}}}],
                "taints": [{"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"}],
                "bindingConditions": ["ready"],
                "bindingFailureConditions": ["failed"],
            }
        ],
    },
}
COUNTERS: dict[str, Any] = copy.deepcopy(SLICE) | {
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-a",
        "pool": {"name": "node-a", "resourceSliceCount": 1},
        "sharedCounters": [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}],
    }
}
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "team", "labels": {"app": "x"}},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "tolerations": [{"key": "k", "operator": "Exists"}, {"key": "k", "value": "v"}],
                        "capacity": {"requests": {"memory": "10Gi"}},
                    },
                },
                {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]},
            ],
            "constraints": [{"requests": ["gpu", "any/big"], "matchAttribute": "example.com/numa"}],
            "config": [{"requests": ["gpu"], "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}],
        }
    },
}
CLASS: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
    "spec": {"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": "example.com/gpu"},
}
RULE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "r"},
    "spec": {"deviceSelector": {"driver": "d", "pool": "a/b", "device": "x"}, "taint": {"key": "k", "effect": "None"}},
}

D, C, R = "/spec/devices/0", "/spec/devices/0/capacity/memory", "/spec/devices/requests"
CEL = R + "/0/exactly/selectors/0/cel"
POLICY, RANGE = C + "/requestPolicy", C + "/requestPolicy/validRange"
VALUES = D + "/capacity/slots/requestPolicy/validValues"


def changed(base: dict[str, Any], pointer: str, value: object) -> Checked:
    """The object with this value at the pointer; None takes what stands there away."""
    made = copy.deepcopy(base)
    *path, last = [part.replace("~1", "/") for part in pointer.removeprefix("/").split("/")]
    place: Any = made
    for step in path:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    key: Any = int(last) if isinstance(place, list) else last
    if value is None:
        del place[key]
    elif isinstance(place, list) and key == len(place):
        place.append(value)
    else:
        place[key] = value
    return checked(made)


def checked(plain: dict[str, Any]) -> Checked:
    made = read(json.dumps(plain).encode())
    assert not isinstance(made, Node | Pod | ResourceQuota)
    return made


@pytest.mark.parametrize("base", [SLICE, COUNTERS, CLAIM, CLASS, RULE], ids=lambda base: base["kind"])
def test_what_is_right_has_no_fault(base: dict[str, Any]) -> None:
    assert faults(checked(base)) == []


def devices(number: int, **fields: object) -> list[dict[str, object]]:
    return [{"name": f"d{index}", **fields} for index in range(number)]


def counters(number: int) -> dict[str, object]:
    return {f"c{index}": {"value": "1"} for index in range(number)}


@pytest.mark.parametrize(
    ("pointer", "value", "place", "rule"),
    [
        ("/metadata/name", "Node", "/metadata/name", "DNS subdomain"),
        ("/metadata/name", "", "/metadata/name", "name or generateName is required"),
        ("/spec/driver", "a_b", "/spec/driver", "DNS subdomain"),
        ("/spec/driver", f"{'a' * 60}.dev", "/spec/driver", "63 characters"),
        ("/spec/pool/name", "a//b", "/spec/pool/name", "joined by '/'"),
        ("/spec/pool/generation", -1, "/spec/pool/generation", "zero or more"),
        ("/spec/pool/resourceSliceCount", 0, "/spec/pool/resourceSliceCount", "more than zero"),
        ("/spec/nodeName", None, "/spec", "exactly one of nodeName, nodeSelector"),
        ("/spec/nodeName", "", "/spec/nodeName", "name of a node"),
        ("/spec/allNodes", True, "/spec", "exactly one of nodeName"),
        ("/spec/sharedCounters", [{"name": "x", "counters": counters(1)}], "/spec", "only one of sharedCounters"),
        ("/spec/devices", devices(129), "/spec/devices", "at most 128"),
        ("/spec/devices", devices(65, taints=[{"key": "k", "effect": "None"}]), "/spec/devices", "at most 64"),
        ("/spec/devices", devices(65, attributes={"a": {"ints": [1]}}), "/spec/devices", "at most 64"),
        ("/spec/devices/1", {"name": "gpu-0"}, "/spec/devices/1", "unique"),
        (D + "/name", "gpu.0", D + "/name", "DNS label"),
        (D + "/nodeName", "node-a", D, "only where perDeviceNodeSelection"),
        (D + "/attributes/1st", {"int": 1}, D + "/attributes/1st", "C identifier"),
        (D + "/attributes/a~1b-c", {"int": 1}, D + "/attributes/a~1b-c", "C identifier"),
        (D + "/attributes/_~1b", {"int": 1}, D + "/attributes/_~1b", "DNS subdomain"),
        (D + "/attributes/model", {}, D + "/attributes/model", "exactly one of int, bool"),
        (D + "/attributes/model", {"int": 1, "bool": True}, D + "/attributes/model", "exactly one of int, bool"),
        (D + "/attributes/model", {"strings": []}, D + "/attributes/model/strings", "not be empty"),
        (D + "/attributes/model", {"string": "x" * 65}, D + "/attributes/model/string", "at most 64 bytes"),
        (D + "/attributes/model", {"strings": ["é" * 33]}, D + "/attributes/model/strings/0", "at most 64 bytes"),
        (D + "/attributes/model", {"version": "1.2"}, D + "/attributes/model/version", "semantic version"),
        (D + "/attributes", {f"a{n}": {"int": n} for n in range(31)}, D, "at most 32 attributes and capacities"),
        (D + "/attributes", {"a": {"ints": list(range(49))}}, D, "at most 48 attribute values"),
        (C + "/value", "80Gib", C + "/value", "must be a quantity"),
        (D + "/allowMultipleAllocations", False, POLICY, "allowMultipleAllocations"),
        (POLICY + "/default", None, POLICY + "/default", "is required"),
        (POLICY + "/default", "lots", POLICY + "/default", "must be a quantity"),
        (POLICY + "/validValues", ["1"], POLICY, "only one of validValues and validRange"),
        (RANGE + "/min", None, RANGE + "/min", "is required"),
        (RANGE + "/min", "20Gi", RANGE + "/default", "at least min"),
        (RANGE + "/max", "90Gi", RANGE + "/max", "between min"),
        (RANGE + "/max", "5Gi", RANGE + "/default", "at most max"),
        (RANGE + "/max", "12Gi", RANGE + "/step", "multiple of 5Gi"),
        (RANGE + "/step", "0", RANGE + "/step", "more than zero"),
        (RANGE + "/max", "-1", RANGE, "between zero and 9223372036854775807"),
        (VALUES, ["2", "1"], VALUES, "ascend"),
        (VALUES, ["1", "1", "2"], VALUES + "/1", "unique"),
        (VALUES, ["1", "8"], VALUES + "/1", "at most the capacity, 4"),
        (VALUES, ["2", "4"], VALUES, "contain the default"),
        (D + "/taints/0/key", "a/b/c", D + "/taints/0/key", "label key"),
        (D + "/taints/0/effect", "PreferNoSchedule", D + "/taints/0/effect", "one of None, NoSchedule, NoExecute"),
        (D + "/taints", [{"key": "k", "effect": "None"}] * 17, D + "/taints", "at most 16"),
        (D + "/consumesCounters/1", {"counterSet": "card", "counters": counters(1)}, D + "/consumesCounters/1", "uniq"),
        (D + "/consumesCounters/0/counters", {}, D + "/consumesCounters/0/counters", "not be empty"),
        (D + "/consumesCounters/0/counters", counters(33), D + "/consumesCounters/0/counters", "at most 32"),
        (D + "/bindingFailureConditions", None, D + "/bindingFailureConditions", "required"),
        (D + "/bindingFailureConditions", ["ready"], D + "/bindingFailureConditions", "not stand in bindingConditions"),
        (D + "/bindingConditions", ["a", "b", "c", "d", "e"], D + "/bindingConditions", "at most 4"),
    ],
)  # fmt: skip
def test_slices(pointer: str, value: object, place: str, rule: str) -> None:
    found = faults(changed(SLICE, pointer, value))

    assert [(fault.pointer, rule in fault.rule) for fault in found if fault.pointer == place] == [(place, True)], found


@pytest.mark.parametrize(
    ("pointer", "value", "place", "rule"),
    [
        ("/spec/sharedCounters/0/counters", {}, "/spec/sharedCounters/0/counters", "not be empty"),
        ("/spec/sharedCounters/0/counters", counters(33), "/spec/sharedCounters/0/counters", "at most 32"),
        ("/spec/sharedCounters/0/name", "A", "/spec/sharedCounters/0/name", "DNS label"),
        ("/spec/sharedCounters/1", {"name": "card", "counters": counters(1)}, "/spec/sharedCounters/1", "unique"),
        ("/spec/sharedCounters", [{"name": f"s{n}", "counters": counters(1)} for n in range(9)],
         "/spec/sharedCounters", "at most 8"),
    ],
)  # fmt: skip
def test_counter_sets(pointer: str, value: object, place: str, rule: str) -> None:
    assert [(fault.pointer, rule in fault.rule) for fault in faults(changed(COUNTERS, pointer, value))] == [
        (place, True)
    ]


@pytest.mark.parametrize(
    ("choice", "place", "rule"),
    [
        ({"nodeSelector": {"nodeSelectorTerms": []}}, "/spec/nodeSelector/nodeSelectorTerms", "exactly one term"),
        ({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
         "/spec/nodeSelector/nodeSelectorTerms/0/matchExpressions/0", "at least one value"),
        ({"perDeviceNodeSelection": True}, D, "exactly one of nodeName, nodeSelector, allNodes"),
    ],
)  # fmt: skip
def test_the_nodes_of_a_slice(choice: dict[str, Any], place: str, rule: str) -> None:
    made = copy.deepcopy(SLICE)
    del made["spec"]["nodeName"]
    made["spec"] |= choice

    assert [(fault.pointer, rule in fault.rule) for fault in faults(checked(made))] == [(place, True)]


@pytest.mark.parametrize(
    ("pointer", "value", "place", "rule"),
    [
        ("/metadata/labels/app", "a b", "/metadata/labels/app", "label value"),
        (R + "/0/name", "GPU", R + "/0/name", "DNS label"),
        (R + "/0/exactly", None, R + "/0", "exactly one of exactly and firstAvailable"),
        (R + "/1/exactly", {"deviceClassName": "gpu"}, R + "/1", "exactly one of exactly and firstAvailable"),
        (R + "/2", {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}, R + "/2", "unique"),
        (R + "/0/exactly/deviceClassName", "", R + "/0/exactly/deviceClassName", "DNS subdomain"),
        (R + "/0/exactly/count", -1, R + "/0/exactly/count", "more than zero"),
        (R + "/0/exactly/allocationMode", "Some", R + "/0/exactly/allocationMode", "ExactCount, All"),
        (CEL, None, CEL, "required"),
        (CEL + "/expression", "", CEL + "/expression", "required"),
        (CEL + "/expression", "x" * 10241, CEL + "/expression", "10240"),
        (R + "/0/exactly/selectors", [{"cel": {"expression": "true"}}] * 33, R + "/0/exactly/selectors", "at most 32"),
        (R + "/0/exactly/tolerations/0/value", "v", R + "/0/exactly/tolerations/0/value", "empty for operator Exists"),
        (R + "/0/exactly/tolerations/0/operator", "Like", R + "/0/exactly/tolerations/0/operator", "Equal, Exists"),
        (R + "/0/exactly/capacity/requests/memory", "much", R + "/0/exactly/capacity/requests/memory", "quantity"),
        (R + "/1/firstAvailable/1", {"name": "big", "deviceClassName": "gpu"}, R + "/1/firstAvailable/1", "unique"),
        (R + "/1/firstAvailable", [{"name": f"s{n}", "deviceClassName": "gpu"} for n in range(9)],
         R + "/1/firstAvailable", "at most 8"),
        ("/spec/devices/constraints/0/requests/0", "other", "/spec/devices/constraints/0/requests/0", "name a request"),
        ("/spec/devices/constraints/0/requests/1", "gpu/big", "/spec/devices/constraints/0/requests/1", "subrequest"),
        ("/spec/devices/constraints/0/matchAttribute", None, "/spec/devices/constraints/0", "one of matchAttribute"),
        ("/spec/devices/constraints/0/matchAttribute", "numa", "/spec/devices/constraints/0/matchAttribute", "domain"),
        ("/spec/devices/config/0/opaque", None, "/spec/devices/config/0/opaque", "required"),
        ("/spec/devices/config/0/opaque/parameters", {"a": "x" * 10240}, "/spec/devices/config/0/opaque/parameters",
         "10240 bytes"),
    ],
)  # fmt: skip
def test_claims(pointer: str, value: object, place: str, rule: str) -> None:
    found = faults(changed(CLAIM, pointer, value))

    assert [(fault.pointer, rule in fault.rule) for fault in found if fault.pointer == place] == [(place, True)], found


def test_a_template_is_checked_as_its_claim_and_takes_only_labels_and_annotations() -> None:
    spec = copy.deepcopy(CLAIM["spec"])
    spec["devices"]["requests"][0]["name"] = "GPU"
    spec["devices"]["constraints"] = spec["devices"]["config"] = []
    template = {**CLAIM, "kind": "ResourceClaimTemplate", "spec": {"metadata": {"name": "x"}, "spec": spec}}

    assert [fault.pointer for fault in faults(checked(template))] == [
        "/spec/metadata/name",
        "/spec/spec/devices/requests/0/name",
    ]


@pytest.mark.parametrize(
    ("base", "pointer", "value", "rule"),
    [
        (CLASS, "/spec/extendedResourceName", "gpu", "extended resource name"),
        (CLASS, "/spec/extendedResourceName", "requests.example.com/gpu", "extended resource name"),
        (RULE, "/spec/deviceSelector/driver", "-", "DNS subdomain"),
        (RULE, "/spec/deviceSelector/pool", "A", "DNS subdomains"),
        (RULE, "/spec/deviceSelector/device", "a.b", "DNS label"),
        (RULE, "/spec/taint/effect", "Never", "one of None"),
    ],
)
def test_classes_and_rules(base: dict[str, Any], pointer: str, value: object, rule: str) -> None:
    (fault,) = faults(changed(base, pointer, value))

    assert (fault.pointer, fault.value, rule in fault.rule) == (pointer, value, True)


def test_a_fault_reads_as_a_sentence() -> None:
    (fault,) = faults(changed(CLASS, "/spec/extendedResourceName", "gpu"))

    assert str(fault).startswith("/spec/extendedResourceName is 'gpu', must be an extended resource name")


@pytest.mark.parametrize(
    "file", ["slice-h100-mig.yaml", "slices-list.yaml", "claim-first-available.yaml", "taint-rule.yaml"]
)
def test_samples_that_a_cluster_takes_have_no_fault(file: str) -> None:
    documents = yaml.safe_load_all((Path(__file__).parent / "samples" / file).read_text())
    objects = [item for document in documents for item in document.get("items", [document])]

    assert [fault for each in objects for fault in faults(checked(each))] == []
