"""What has no news writes nothing: heartbeats, managed fields, probes; and events of other kinds are not kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from gpuinventory.models import ClusterObject
from gpuinventory.selectors import revision
from gpuinventory.services.ingest import ingest
from tests.gpuinventory.fleet import seen

pytestmark = pytest.mark.django_db


def body(kind: str, version: int, **fields: Any) -> bytes:
    metadata = {
        "name": "a",
        "uid": "u",
        "resourceVersion": str(version),
        "managedFields": [{"manager": "kubelet", "time": f"2026-01-01T00:00:{version:02}Z"}],
        "annotations": {"agent.example.org/last-seen": f"2026-01-01T00:00:{version:02}Z"},
    }
    return json.dumps({"kind": kind, "metadata": metadata} | fields).encode()


def node(version: int, *, ready: str = "True") -> bytes:
    heartbeat = f"2026-01-01T00:00:{version:02}Z"
    status = {
        "allocatable": {"pods": "110"},
        "conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}],
        "images": [{"names": [f"image-{version}"]}],
    }
    return body("Node", version, spec={"unschedulable": False}, status=status)


def pod(version: int, *, phase: str = "Pending") -> bytes:
    secret = [{"name": "TOKEN", "value": f"secret-{version}"}]
    container = {"name": "main", "image": "x", "env": secret, "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    return body("Pod", version, spec=spec, status={"phase": phase, "podIP": f"10.0.0.{version}"})


def kept(kind: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bytes(ClusterObject.objects.get(kind=kind).body))
    return content


def test_heartbeats_write_nothing_and_a_node_that_is_not_ready_does() -> None:
    assert ingest("Node", seen([node(1)])) == 1
    before = revision()
    assert ingest("Node", seen([node(2)])) == ingest("Node", seen([node(3)])) == 0
    assert revision() == before
    assert ingest("Node", seen([node(4, ready="False")])) == 1
    assert kept("Node")["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def test_a_poll_after_a_heartbeat_finds_nothing_new(as_alice: Client) -> None:
    ingest("Node", seen([node(1)]))
    address, headers = f"/devices/?since={revision()}", {"HX-Request": "true", "HX-Request-Type": "partial"}
    ingest("Node", seen([node(2)]))
    assert as_alice.get(address, headers=headers).status_code == 204
    ingest("Node", seen([node(3, ready="False")]))
    assert as_alice.get(address, headers=headers).status_code == 200


def test_of_pods_claims_and_scheduling_are_kept_and_no_environment() -> None:
    assert ingest("Pod", seen([pod(1)])) == 1
    assert ingest("Pod", seen([pod(2)])) == 0
    assert kept("Pod")["spec"] == {
        "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
        "initContainers": [],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
    }
    assert "secret" not in json.dumps(kept("Pod"))
    assert ingest("Pod", seen([pod(3, phase="Running")])) == 1


@pytest.mark.parametrize(("about", "written"), [("Pod", 1), ("ResourceClaim", 1), ("Deployment", 0), (None, 0)])
def test_only_events_of_pods_and_claims_are_kept(about: str | None, written: int) -> None:
    event = body("Event", 1, involvedObject={"kind": about, "name": "x"}, reason="FailedScheduling", message="no")
    assert ingest("Event", seen([event])) == written
    assert ClusterObject.objects.filter(kind="Event").count() == written


def test_labels_of_a_namespace_are_kept_and_changes_of_versions_alone_write_nothing() -> None:
    first, second = body("Namespace", 1), body("Namespace", 2)
    assert (ingest("Namespace", seen([first])), ingest("Namespace", seen([second]))) == (1, 0)
    labelled = json.loads(body("Namespace", 3))
    labelled["metadata"]["labels"] = {"team": "ml"}
    assert ingest("Namespace", seen([json.dumps(labelled).encode()])) == 1
    assert kept("Namespace")["metadata"]["labels"] == {"team": "ml"}


def test_one_that_has_another_form_is_left_out_and_the_others_come_in() -> None:
    odd = json.loads(body("Pod", 1)) | {"spec": {"containers": 7}}
    odd["metadata"]["name"] = "odd"
    assert ingest("Pod", seen([json.dumps(odd).encode(), pod(1)])) == 1
