"""ResourceClaims made for pods, held by them and gone with them, as the controller of a real cluster does it.

Texts and the shape of a made claim were read from Kubernetes 1.37.2 with the same objects.
"""

import pytest

from simulator import kinds
from simulator.store import NotFoundError
from tests.simulator.clusters import NAMESPACE, Cluster, pod, small, template


@pytest.fixture
def cluster() -> Cluster:
    made = small()
    made.add(template("one"))
    return made


def test_a_claim_is_made_from_its_template(cluster: Cluster) -> None:
    cluster.add(pod("ok", "one"))
    cluster.claims.sync()
    claim = cluster.claim_of("ok")
    uid = cluster.pod("ok")["metadata"]["uid"]
    meta = claim["metadata"]
    assert meta["generateName"] == "ok-gpu-"
    assert len(meta["name"]) == len("ok-gpu-") + 5
    assert meta["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "ok", "uid": uid, "controller": True}
    assert meta["ownerReferences"] == [owner]
    request = {"deviceClassName": "x", "allocationMode": "ExactCount", "count": 1}
    assert claim["spec"] == {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}


def test_a_second_look_makes_nothing(cluster: Cluster) -> None:
    cluster.add(pod("ok", "one"))
    cluster.claims.sync()
    version = cluster.store.version
    cluster.claims.sync()
    assert cluster.store.version == version


def test_a_claim_that_is_not_in_the_status_yet_is_found_again(cluster: Cluster) -> None:
    cluster.add(pod("ok", "one"))
    cluster.claims.sync()
    name = cluster.claim_of("ok")["metadata"]["name"]
    cluster.hands.set_status(kinds.POD, cluster.pod("ok"), {"resourceClaimStatuses": None})
    cluster.claims.sync()
    assert cluster.claim_of("ok")["metadata"]["name"] == name


def test_names_and_labels_of_the_template_go_along(cluster: Cluster) -> None:
    labelled = template("labelled")
    labelled["spec"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    cluster.add(labelled, pod("p", "labelled"))
    cluster.claims.sync()
    meta = cluster.claim_of("p")["metadata"]
    assert meta["labels"] == {"a": "b"}
    assert meta["annotations"] == {"c": "d", "resource.kubernetes.io/pod-claim-name": "gpu"}
    assert meta["generateName"] == "p-gpu-"


def test_a_missing_template_is_told_and_waited_for(cluster: Cluster) -> None:
    cluster.add(pod("notemplate", "absent"))
    cluster.settle()
    absent = 'resource claim template "absent": resourceclaimtemplate.resource.k8s.io "absent" not found'
    assert cluster.said("notemplate") == [f"FailedResourceClaimCreation: PodResourceClaim gpu: {absent}"]
    assert "conditions" not in cluster.pod("notemplate")["status"]
    cluster.add(template("absent"))
    cluster.settle()
    assert cluster.pod("notemplate")["spec"]["nodeName"]


def test_a_quota_refuses_until_it_grows(cluster: Cluster) -> None:
    key = "x.deviceclass.resource.k8s.io/devices"
    meta = {"name": "few", "namespace": NAMESPACE}
    cluster.add(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {key: "1"}}},
        template("two", count=2),
        pod("quota", "two"),
    )
    cluster.settle()
    (told,) = cluster.events("quota")
    assert told["reason"] == "FailedResourceClaimCreation"
    assert told["source"] == {"component": "resource_claim"}
    start, _, end = told["message"].partition('"quota-gpu-')
    assert start == "PodResourceClaim gpu: create ResourceClaim : resourceclaims.resource.k8s.io "
    assert end[5:] == f'" is forbidden: exceeded quota: few, requested: {key}=2, used: {key}=0, limited: {key}=1'
    cluster.change(kinds.RESOURCE_QUOTA, "few", hard={key: "2"})
    cluster.claims.sync()
    assert cluster.claim_of("quota")


def test_a_pod_that_ends_gives_its_devices_back_and_its_claim_goes(cluster: Cluster) -> None:
    cluster.add(pod("ok", "one"))
    cluster.settle()
    claim = cluster.claim_of("ok")
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    cluster.finish("ok")
    cluster.settle()
    with pytest.raises(NotFoundError):
        cluster.claim_of("ok")


def test_a_pod_that_is_deleted_takes_its_claim_along(cluster: Cluster) -> None:
    cluster.add(pod("ok", "one"))
    cluster.settle()
    cluster.hands.delete(cluster.pod("ok"))
    cluster.settle()
    assert "allocation" in cluster.claim_of("ok")["status"]  # it may still run
    cluster.hands.delete(cluster.pod("ok"), at_once=True)
    held = cluster.store.all(kinds.RESOURCE_CLAIM)
    assert [("deletionTimestamp" in each["metadata"], "allocation" in each["status"]) for each in held] == [
        (True, True)
    ]
    cluster.settle()
    assert cluster.store.all(kinds.RESOURCE_CLAIM) == []


def test_a_claim_that_people_made_is_freed_and_stays(cluster: Cluster) -> None:
    spec = template("x")["spec"]["spec"]
    meta = {"name": "mine", "namespace": NAMESPACE}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}
    entries = [{"name": "gpu", "resourceClaimName": "mine"}]
    cluster.add(claim, pod("one", resourceClaims=entries), pod("two", resourceClaims=entries))
    cluster.settle()
    stored = cluster.store.get(kinds.RESOURCE_CLAIM, "mine", NAMESPACE)
    assert [each["name"] for each in stored["status"]["reservedFor"]] == ["one", "two"]
    assert cluster.pod("one")["spec"]["nodeName"] == cluster.pod("two")["spec"]["nodeName"]
    cluster.finish("one")
    cluster.settle()
    stored = cluster.store.get(kinds.RESOURCE_CLAIM, "mine", NAMESPACE)
    assert [each["name"] for each in stored["status"]["reservedFor"]] == ["two"]
    cluster.finish("two")
    cluster.settle()
    stored = cluster.store.get(kinds.RESOURCE_CLAIM, "mine", NAMESPACE)
    assert stored["status"] == {}
    assert "finalizers" not in stored["metadata"]
