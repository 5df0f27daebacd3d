"""Deployments and their pods: made, rolled out, scaled, ended; what does not run here says so."""

from typing import Any

import pytest

from simulator import kinds
from simulator.store import Object
from tests.simulator.clusters import NAMESPACE, Living, device_class, node, slice_of, template

LABELS = {"app": "web"}


@pytest.fixture
def cluster() -> Living:
    made = Living()
    made.add(node("n1"), slice_of("n1", *({"name": f"d{number}"} for number in range(8))), device_class("x"))
    made.add(template("one"))
    return made


def deployment(replicas: int, image: str = "x:1", **spec: Any) -> Object:
    container = {"name": "c", "image": image, "resources": {"claims": [{"name": "gpu"}]}}
    pod = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}}
    body |= {"template": {"metadata": {"labels": LABELS}, "spec": pod}} | spec
    meta = {"name": "web", "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": body}


def status(cluster: Living) -> dict[str, Any]:
    found: dict[str, Any] = cluster.store.get(kinds.DEPLOYMENT, "web", NAMESPACE)["status"]
    return found


def images(cluster: Living) -> list[str]:
    return sorted(each["spec"]["containers"][0]["image"] for each in cluster.pods())


def test_a_deployment_makes_its_pods_and_they_run_with_their_claims(cluster: Living) -> None:
    cluster.add(deployment(3))
    cluster.settle()
    (replica_set,) = cluster.store.all(kinds.REPLICA_SET, NAMESPACE)
    mark = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{mark}"
    assert [each["metadata"]["labels"] for each in cluster.pods()] == [LABELS | {"pod-template-hash": mark}] * 3
    assert {each["status"]["phase"] for each in cluster.pods()} == {"Pending"}
    assert status(cluster)["conditions"][0]["reason"] == "MinimumReplicasUnavailable"
    cluster.pass_seconds(2)
    assert {each["status"]["phase"] for each in cluster.pods()} == {"Running"}
    counts = {key: status(cluster).get(key) for key in ("replicas", "readyReplicas", "unavailableReplicas")}
    assert counts == {"replicas": 3, "readyReplicas": 3, "unavailableReplicas": None}
    assert len(cluster.store.all(kinds.RESOURCE_CLAIM)) == 3


def test_scaled_down_it_gives_up_pods_without_a_node_first(cluster: Living) -> None:
    cluster.add(deployment(9))
    cluster.pass_seconds(2)
    waiting = [each["metadata"]["name"] for each in cluster.pods() if "nodeName" not in each["spec"]]
    assert len(waiting) == 1
    cluster.change(kinds.DEPLOYMENT, "web", replicas=8)
    cluster.pass_seconds(5)
    assert waiting[0] not in [each["metadata"]["name"] for each in cluster.pods()]
    assert len(cluster.pods()) == 8


def test_a_pod_that_was_deleted_is_made_again(cluster: Living) -> None:
    cluster.add(deployment(1))
    cluster.pass_seconds(2)
    (old,) = cluster.pods()
    cluster.hands.delete(old)
    cluster.pass_seconds(2)
    cluster.pass_seconds(2)
    (new,) = cluster.pods()
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert len(cluster.store.all(kinds.RESOURCE_CLAIM)) == 1


def test_a_new_template_ends_the_old_pods_first(cluster: Living) -> None:
    cluster.add(deployment(2))
    cluster.pass_seconds(2)
    cluster.change(kinds.DEPLOYMENT, "web", template=deployment(2, "x:2")["spec"]["template"])
    mixed = False
    for _ in range(6):
        cluster.pass_seconds(2)
        ready = {
            each["spec"]["containers"][0]["image"] for each in cluster.pods() if each["status"]["phase"] == "Running"
        }
        mixed = mixed or len(ready) > 1
    assert images(cluster) == ["x:2"] * 2
    assert not mixed


def test_a_deployment_that_is_deleted_takes_everything_along(cluster: Living) -> None:
    cluster.add(deployment(2))
    cluster.pass_seconds(2)
    cluster.hands.delete(cluster.store.get(kinds.DEPLOYMENT, "web", NAMESPACE))
    assert all("deletionTimestamp" in each["metadata"] for each in cluster.pods())
    cluster.pass_seconds(2)
    cluster.settle()
    assert cluster.pods() == []
    assert cluster.store.all(kinds.RESOURCE_CLAIM) == []


def test_a_refused_pod_is_told_once(cluster: Living) -> None:
    meta = {"name": "none", "namespace": NAMESPACE}
    cluster.add({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "0"}}})
    cluster.add(deployment(2))
    cluster.settle()
    cluster.pass_seconds(2)
    (replica_set,) = cluster.store.all(kinds.REPLICA_SET, NAMESPACE)
    (told,) = cluster.said(replica_set["metadata"]["name"])
    assert told.startswith("FailedCreate: Error creating: pods ")
    assert told.endswith("is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0")


@pytest.mark.parametrize("kind", ["StatefulSet", "Job"])
def test_what_does_not_run_here_says_so_once(cluster: Living, kind: str) -> None:
    given = deployment(1)
    spec = {key: value for key, value in given["spec"].items() if kind == "StatefulSet" or key == "template"}
    version = "apps/v1" if kind == "StatefulSet" else "batch/v1"
    if kind == "Job":
        spec["template"]["spec"]["restartPolicy"] = "Never"
    cluster.add(given | {"kind": kind, "apiVersion": version, "spec": spec})
    cluster.settle()
    cluster.pass_seconds(2)
    only = "only Pods and Deployments run here"
    assert cluster.said("web") == [f"NotRunHere: the simulator keeps a {kind} and does not run it: {only}"]
    assert cluster.pods() == []
