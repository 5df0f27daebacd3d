"""What both API servers promise of pods and owners."""

from typing import Any

from tests.contracts.conftest import Door
from tests.contracts.test_objects import claim, claims


def pods(door: Door) -> str:
    return f"/api/v1/namespaces/{door.namespace}/pods"


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none.example.com/none:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "schedulerName": "nobody", "automountServiceAccountToken": False, **spec},
    }


def make_account(door: Door) -> None:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    door.send("POST", f"/api/v1/namespaces/{door.namespace}/serviceaccounts", body)


def test_a_pod_waits_with_its_defaults(door: Door) -> None:
    make_account(door)
    reply = door.send("POST", pods(door), pod())
    assert reply.code == 201, reply.body
    assert reply.body["status"]["phase"] == "Pending"
    assert (reply.body["spec"]["restartPolicy"], reply.body["spec"]["terminationGracePeriodSeconds"]) == ("Always", 30)


def test_a_pod_without_containers_or_with_a_claim_it_lacks_is_invalid(door: Door) -> None:
    make_account(door)
    assert door.send("POST", pods(door), pod(containers=[])).code == 422
    body = pod()
    body["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    reply = door.send("POST", pods(door), body)
    assert reply.code == 422
    assert "spec.containers[0].resources.claims[0]" in reply.body["message"]


def test_a_pod_on_a_node_is_given_time_to_end(door: Door) -> None:
    make_account(door)
    door.send("POST", pods(door), pod(nodeName="n1"))
    held = door.send("DELETE", f"{pods(door)}/p").body
    assert (held["metadata"]["deletionGracePeriodSeconds"], "deletionTimestamp" in held["metadata"]) == (30, True)
    assert door.send("DELETE", f"{pods(door)}/p?gracePeriodSeconds=0").code == 200
    assert door.send("GET", f"{pods(door)}/p").code == 404


def test_pods_are_selected_by_node(door: Door) -> None:
    make_account(door)
    door.send("POST", pods(door), pod("a", nodeName="n1"))
    door.send("POST", pods(door), pod("b"))
    reply = door.send("GET", f"{pods(door)}?fieldSelector=spec.nodeName%3Dn1")
    assert [item["metadata"]["name"] for item in reply.body["items"]] == ["a"]


def test_what_a_deleted_object_owned_goes_too(door: Door) -> None:
    owner = door.send("POST", claims(door), claim("owner")).body
    reference = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "name": "owner", "uid": owner["metadata"]["uid"],
    }  # fmt: skip
    door.send("POST", claims(door), claim("owned", ownerReferences=[reference]))
    door.send("DELETE", f"{claims(door)}/owner")
    door.settle(lambda: door.send("GET", f"{claims(door)}/owned").code == 404)
