"""What the pod itself asks of a node: CPU, memory, places, labels and taints, beside what other pods take already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from claims.services.fit import pod as fitpod
from tests.claims.rows import KEY, QUERY, put
from tests.claims.test_fit import words
from tests.gpuinventory.test_usage import pod

pytestmark = pytest.mark.usefixtures("fleet")
OWN = f"{QUERY}&workload=own&form={KEY}"


def node(name: str = "node-1", *, pods: str = "110", **spec: Any) -> bytes:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "2", "labels": {"zone": "a"}}
    allocatable = {"cpu": "8", "memory": "64Gi", "pods": pods}
    return json.dumps({"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}}).encode()


def said(client: Client, spec: Mapping[str, Any], **requests: str) -> str:
    """The fit panel for a pasted pod."""
    container = {"name": "main", "image": "x", "resources": {"requests": requests}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine"}, "spec": {"containers": [container], **spec}}
    answer = client.post("/request/paste", dict(parse_qsl(OWN)) | {"text": json.dumps(pod)})
    assert answer.status_code == 303, answer.content
    html = client.get(f"/request/?{urlsplit(answer['Location']).query}").content.decode()
    return words(html[html.index('<section class="card fit"') :])


def test_a_pod_that_fits_beside_those_that_run(as_alice: Client) -> None:
    put("Node", node())
    put("Pod", pod("other", "node-1", cpu="4", memory="60Gi"))
    assert "Fits now on 1 node, once." in said(as_alice, {}, cpu="4", memory="4Gi")


@pytest.mark.parametrize(
    ("requests", "sentence"),
    [
        ({"cpu": "5"}, "the pod asks for 5 of cpu, and 1 node with free devices has at most 4 left."),
        ({"memory": "5Gi"}, "the pod asks for 5Gi of memory, and 1 node with free devices has at most 4Gi left."),
        (
            {"cpu": "5", "memory": "5Gi"},
            (
                "the pod asks for 5 of cpu, and 1 node with free devices has at most 4 left; and the pod asks for 5Gi "
                "of memory, and 1 node with free devices has at most 4Gi left."
            ),
        ),
    ],
)
def test_what_lacks_is_said_with_numbers(as_alice: Client, requests: dict[str, str], sentence: str) -> None:
    put("Node", node())
    put("Pod", pod("other", "node-1", cpu="4", memory="60Gi"), pod("done", "node-1", phase="Succeeded", cpu="4"))
    assert f"Devices are free, but {sentence}" in said(as_alice, {}, **requests)


def test_a_node_that_runs_as_many_pods_as_it_may(as_alice: Client) -> None:
    put("Node", node(pods="1"))
    put("Pod", pod("other", "node-1"))
    assert "Devices are free, but 1 node with free devices has no place for one more pod." in said(as_alice, {})


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"nodeSelector": {"zone": "b"}}, "1 node with free devices has no label zone=b, by which the pod selects."),
        ({}, "1 node with free devices has the taint team=other:NoSchedule, which the pod does not tolerate."),
    ],
)
def test_labels_and_taints(as_alice: Client, spec: dict[str, Any], sentence: str) -> None:
    put("Node", node(taints=[] if spec else [{"key": "team", "value": "other", "effect": "NoSchedule"}]))
    assert f"Devices are free, but {sentence}" in said(as_alice, spec)


def test_a_taint_that_the_pod_tolerates_and_an_affinity_that_holds_keep_nothing_away(as_alice: Client) -> None:
    put("Node", node(taints=[{"key": "team", "value": "other", "effect": "NoSchedule"}]))
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"tolerations": [{"key": "team", "operator": "Exists"}], "affinity": {"nodeAffinity": required}}
    assert "Fits now on 1 node" in said(as_alice, spec)
    term["matchExpressions"][0]["values"] = ["b"]
    assert "1 node with free devices is left out by the pod's node affinity." in said(as_alice, spec)


def test_an_amount_that_cannot_be_read_is_told_and_left_out(as_alice: Client) -> None:
    put("Node", node())
    told = said(as_alice, {}, cpu="much")
    assert "Fits now on 1 node" in told
    assert "What the pod asks of its node can't be read and is left out:" in told


def test_a_workload_that_asks_for_devices_by_extended_resource_asks_the_node_for_nothing(as_alice: Client) -> None:
    put("Node", node())
    html = as_alice.get(f"/request/?{QUERY}&class=h100-shared&style=extended&form={KEY}").content.decode()
    assert "gpu.portico.dev/h100" in html
    assert "Fits now on 1 node" in words(html)


def test_the_pods_of_a_deployment_with_an_autoscaler_ask_for_a_cpu_each(as_alice: Client) -> None:
    put("Node", node())
    put("Pod", pod("other", "node-1", cpu="7500m"))
    more = "&workload=deployment&scale.min=1&scale.max=2"
    html = as_alice.get(f"/request/?{QUERY}{more}&form={KEY}").content.decode()
    assert "the pod asks for 1 of cpu, and 1 node with free devices has at most 500m left." in words(html)


def test_what_is_proposed_fits_the_same_pod(as_alice: Client) -> None:
    """Three cards are more than a node has; two would do, but no node has the CPU."""
    put("Node", node())
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "9"}}}
    text = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "m"}, "spec": {"containers": [container]}}
    answer = as_alice.post("/request/paste", dict(parse_qsl(OWN)) | {"count": "3", "text": json.dumps(text)})
    html = as_alice.get(f"/request/?{urlsplit(answer['Location']).query}").content.decode()
    assert "instead of 3" not in html
    assert "no node has 3 of these" in words(html)


@pytest.mark.parametrize("spec", [{"template": {"spec": {}}}, {"jobTemplate": {"spec": {"template": {"spec": {}}}}}])
def test_the_pod_of_each_kind_is_found(spec: dict[str, Any]) -> None:
    inner = spec
    while "spec" not in inner or inner["spec"]:
        inner = inner.get("template") or inner.get("jobTemplate") or inner["spec"]
    inner["spec"] = {"containers": [{"name": "c"}], "nodeName": "here"}
    assert fitpod._pod_spec(json.dumps({"spec": spec})).node_name == "here"
