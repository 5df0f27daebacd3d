"""What the API server takes as a GPUClass and what it refuses, by the CRD that the chart ships."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra.objects import GPUClass, decode, encode
from tests.cluster.cluster import Cluster
from tests.cluster.gpuclasses import PATH, generated, gpu_class, serve

TRY = f"{PATH}?dryRun=All&fieldValidation=Strict"
FULL: dict[str, Any] = {
    "description": "For training on whole cards.",
    "deviceClass": generated(
        config=[{"opaque": {"driver": "gpu.example.com", "parameters": {"sharing": {"interval": "Long"}}}}],
        extendedResourceName="gpu.example.com/h100",
    ),
    "mode": "any",
    "count": {"min": 1, "max": 8, "default": 2},
    "memory": {"min": "10Gi", "max": "80Gi", "default": "40Gi"},
    "share": {"min": 10, "max": 50, "default": 20, "step": 10},
    "namespaces": ["ml-team"],
    "pricePerHour": "2.50",
    "order": 10,
    "state": "paused",
    "message": "New cards come on Monday.",
}
TAKEN = {
    "the least": {},
    "everything": FULL,
    "a default device class generated": {"deviceClass": generated()},
    "the same amount in other units": {"memory": {"min": "1024Mi", "max": "1Gi", "default": "1Gi"}},
    "only a least memory": {"memory": {"min": "10Gi"}},
    "min = default = max": {"count": {"min": 4, "max": 4, "default": 4}},
    "shares of one device": {"mode": "share", "count": {"max": 1}, "share": {"max": 50, "default": 25}},
    "replaced": {"state": "replaced", "replacedBy": "h200"},
    "a price without a fraction": {"pricePerHour": "3"},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no title": ({"title": ""}, "spec.title"),
    "a long title": ({"title": "x" * 81}, "spec.title"),
    "neither name nor generated": ({"deviceClass": {}}, "exactly one of name and generated"),
    "both name and generated": ({"deviceClass": {"name": "a", **generated()}}, "exactly one of name and generated"),
    "a device class that is no name": ({"deviceClass": {"name": "H100"}}, "spec.deviceClass.name"),
    "no selector": ({"deviceClass": {"generated": {"selectors": []}}}, "selectors"),
    "an empty selector": ({"deviceClass": generated("")}, "expression"),
    "33 selectors": ({"deviceClass": generated(*["true"] * 33)}, "selectors"),
    "an extended resource without a domain": ({"deviceClass": generated(extendedResourceName="h100")}, "extended"),
    "an extended resource of Kubernetes": (
        {"deviceClass": generated(extendedResourceName="deviceclass.resource.kubernetes.io/h100")},
        "belong to Kubernetes",
    ),
    "an unknown mode": ({"mode": "half"}, "spec.mode"),
    "count.default below min": ({"count": {"min": 3}}, "min <= default <= max"),
    "count.default above max": ({"count": {"max": 4, "default": 5}}, "min <= default <= max"),
    "no device": ({"count": {"min": 0, "default": 0}}, "spec.count.min"),
    "33 devices": ({"count": {"max": 33}}, "spec.count.max"),
    "memory.min above max": ({"memory": {"min": "2Gi", "max": "2000Mi"}}, "min <= max"),
    "memory.default above max": ({"memory": {"max": "1Gi", "default": "2Gi"}}, "default <= max"),
    "memory.default below min": ({"memory": {"min": "2Gi", "default": "1Gi"}}, "min <= default"),
    "memory that is no amount": ({"memory": {"min": "much"}}, "spec.memory.min"),
    "memory below zero": ({"memory": {"min": "-1Gi"}}, "spec.memory.min"),
    "a share beside its steps": ({"share": {"step": 10}}, "multiples of step"),
    "a step that is not of five": ({"share": {"min": 7, "default": 7, "max": 7, "step": 7}}, "spec.share.step"),
    "share.default below min": ({"share": {"min": 50, "default": 25}}, "min <= default <= max"),
    "more than the whole": ({"share": {"max": 105}}, "spec.share.max"),
    "shares of whole cards": ({"mode": "whole", "share": {"max": 50, "default": 25}}, "modes share and any"),
    "shares of two devices": ({"mode": "share", "count": {"max": 2}}, "count.max must be 1"),
    "shares of 32 devices by default": ({"mode": "share"}, "count.max must be 1"),
    "namespaces with a foreign device class": ({"namespaces": ["ml-team"]}, "must generate its device class"),
    "a namespace twice": ({"deviceClass": generated(), "namespaces": ["a", "a"]}, "Duplicate value"),
    "a namespace that is no name": ({"deviceClass": generated(), "namespaces": ["A"]}, "spec.namespaces"),
    "a price in words": ({"pricePerHour": "two"}, "spec.pricePerHour"),
    "a price below zero": ({"pricePerHour": "-1"}, "spec.pricePerHour"),
    "an order below zero": ({"order": -1}, "spec.order"),
    "an unknown state": ({"state": "closed"}, "spec.state"),
    "paused without a message": ({"state": "paused"}, "needs a message"),
    "paused with an empty message": ({"state": "paused", "message": ""}, "needs a message"),
    "replaced by nothing": ({"state": "replaced"}, "replacedBy goes with the state replaced"),
    "replacedBy while open": ({"replacedBy": "h200"}, "replacedBy goes with the state replaced"),
    "replaced by itself": ({"state": "replaced", "replacedBy": "h100"}, "must name another class"),
    "a field that is none": ({"colour": "green"}, 'unknown field "spec.colour"'),
}


@pytest.fixture(scope="module", autouse=True)
def served(cluster: Cluster) -> None:
    """The chart's CRD is there."""
    serve(cluster)


@pytest.mark.parametrize("spec", TAKEN.values(), ids=TAKEN)
def test_taken(cluster: Cluster, spec: dict[str, Any]) -> None:
    answer = cluster.raw("POST", TRY, json.dumps(gpu_class(**spec)).encode())
    assert answer.status == 201, answer.body


@pytest.mark.parametrize(("spec", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(cluster: Cluster, spec: dict[str, Any], words: str) -> None:
    answer = cluster.raw("POST", TRY, json.dumps(gpu_class(**spec)).encode())
    assert answer.status in (400, 422), answer.body
    assert words in answer.json()["message"]


def test_what_the_struct_writes_is_taken_and_reads_the_same(cluster: Cluster) -> None:
    written = decode(json.dumps(gpu_class(**FULL)).encode(), GPUClass)
    answer = cluster.raw("POST", TRY, encode(written))
    assert answer.status == 201, answer.body
    assert decode(answer.body, GPUClass).spec == written.spec


def test_defaults_of_the_struct_are_those_of_the_server(cluster: Cluster) -> None:
    least = gpu_class(share={})
    answer = cluster.raw("POST", TRY, json.dumps(least).encode())
    assert decode(answer.body, GPUClass).spec == decode(json.dumps(least).encode(), GPUClass).spec
    assert answer.json()["spec"]["count"] == {"min": 1, "max": 32, "default": 1}
    assert answer.json()["spec"]["share"] == {"min": 5, "max": 100, "default": 100, "step": 5}
