"""Pods whose devices are made ready after they were allocated (binding conditions, KEP-5007).

The words are kube-scheduler's (1.37.2): tests/contracts/test_binding.py holds them to a real one.
"""

from typing import Any

import pytest

from simulator import kinds
from simulator.claims import without_finalizer
from simulator.store import Object
from tests.simulator.clusters import DRIVER, NAMESPACE, Cluster, device_class, node, pod, slice_of, template

READY, FAILED = "x.example.com/ready", "x.example.com/failed"
GIVEN_UP = "deallocation of ResourceClaim completed"
NOT_HELPFUL = "preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."


def late(name: str, *conditions: str) -> Object:
    return {"name": name, "bindingConditions": list(conditions or (READY,)), "bindingFailureConditions": [FAILED]}


def of_nodes(*names: str) -> Cluster:
    """Nodes with one such device each, `d0`."""
    cluster = Cluster()
    for name in names:
        cluster.add(node(name), slice_of(name, late("d0")))
    cluster.add(device_class("x"), template("one"))
    return cluster


@pytest.fixture
def cluster() -> Cluster:
    """A pod that waits for the only device of the only node."""
    made = of_nodes("n1")
    made.add(pod("a", "one"))
    made.settle()
    return made


def say(cluster: Cluster, claim: Object, device: str = "d0", **conditions: str) -> None:
    """What the driver writes into the claim's status: each condition's status by the last part of its name."""
    pool = claim["status"]["allocation"]["devices"]["results"][0]["pool"]
    said = [
        {"type": f"x.example.com/{name}", "status": status, "reason": "Said", "message": f'"{name}" is {status}'}
        for name, status in conditions.items()
    ]
    status = {"driver": DRIVER, "pool": pool, "device": device, "conditions": said}
    cluster.hands.set_status(kinds.RESOURCE_CLAIM, claim, {"devices": [status]})
    cluster.settle()


def taint(cluster: Cluster, node_name: str, *devices: Object) -> None:
    """The node's devices as they are published from now on, none of them for new claims."""
    taints = [{"key": "x.example.com/broken", "effect": "NoSchedule"}]
    tainted = [device | {"taints": taints} for device in devices]
    cluster.change(kinds.RESOURCE_SLICE, f"{node_name}-x", devices=tainted)


def pending(node_name: str) -> str:
    return f"BindingConditionsPending: waiting for binding conditions for device on node {node_name}"


def failed(cluster: Cluster, name: str, why: str) -> bool:
    return f'FailedScheduling: running PreBind plugin "DynamicResources": {why}' in cluster.said(name)


def allocated(claim: Object) -> bool:
    return "allocation" in claim.get("status", {})


def where(cluster: Cluster, name: str) -> tuple[str, str]:
    """The node that a pod is bound to, and the one that it waits for."""
    found = cluster.pod(name)
    return found["spec"].get("nodeName", ""), found["status"].get("nominatedNodeName", "")


def test_a_pod_waits_for_its_device_and_is_bound_when_it_is_ready(cluster: Cluster) -> None:
    claim = cluster.claim_of("a")
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    assert (given["bindingConditions"], given["bindingFailureConditions"]) == ([READY], [FAILED])
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["a"]
    assert where(cluster, "a") == ("", "n1")
    assert cluster.said("a") == [pending("n1")]
    assert "conditions" not in cluster.pod("a")["status"]

    say(cluster, claim, ready="False")
    assert where(cluster, "a") == ("", "n1")
    say(cluster, cluster.claim_of("a"), ready="True")
    assert where(cluster, "a") == ("n1", "")
    assert cluster.said("a") == [pending("n1"), f"Scheduled: Successfully assigned {NAMESPACE}/a to n1"]


def test_every_condition_has_to_be_true() -> None:
    cluster = Cluster()
    cluster.add(node("n1"), slice_of("n1", late("d0", READY, "x.example.com/attached")))
    cluster.add(device_class("x"), template("one"), pod("a", "one"))
    cluster.settle()
    say(cluster, cluster.claim_of("a"), ready="True")
    assert where(cluster, "a") == ("", "n1")
    say(cluster, cluster.claim_of("a"), ready="True", attached="True")
    assert where(cluster, "a") == ("n1", "")


def test_a_device_that_is_ready_already_is_waited_for_all_the_same(cluster: Cluster) -> None:
    say(cluster, cluster.claim_of("a"), ready="True")
    name = cluster.claim_of("a")["metadata"]["name"]
    cluster.add(pod("b", resourceClaims=[{"name": "gpu", "resourceClaimName": name}]))
    cluster.settle()
    assert cluster.said("b") == [pending("n1"), f"Scheduled: Successfully assigned {NAMESPACE}/b to n1"]


def test_a_device_that_fails_is_given_up_and_another_nodes_is_tried() -> None:
    cluster = of_nodes("n1", "n2")
    cluster.add(pod("a", "one"))
    cluster.settle()
    claim = cluster.claim_of("a")
    taint(cluster, "n1", late("d0"))
    say(cluster, claim, failed="True", ready="False")
    why = rf'device binding failed: claim={claim["metadata"]["name"]}, reason=Said, message="\"failed\" is True"'
    assert failed(cluster, "a", why)
    no_node = "0/2 nodes are available: 2 resourceclaim not available on the node."
    assert f"FailedScheduling: {no_node} {GIVEN_UP}, {NOT_HELPFUL.format(n=2)}" in cluster.said("a")
    assert cluster.said("a")[-1] == pending("n2")
    assert where(cluster, "a") == ("", "n2")
    given = cluster.claim_of("a")
    assert "devices" not in given["status"]
    say(cluster, given, ready="True")
    assert where(cluster, "a") == ("n2", "")


def test_another_device_of_the_node_is_tried_too() -> None:
    cluster = Cluster()
    cluster.add(node("n1"), slice_of("n1", late("d0"), {"name": "d1"}), device_class("x"))
    cluster.add(template("one", selectors=[{"cel": {"expression": "true"}}]), pod("a", "one"))
    cluster.settle()
    taint(cluster, "n1", late("d0"))
    say(cluster, cluster.claim_of("a"), failed="True")
    assert where(cluster, "a") == ("", "")
    assert not allocated(cluster.claim_of("a"))
    assert cluster.said("a")[-1].startswith("FailedScheduling: 0/1 nodes are available: 1 cannot allocate all claims.")

    cluster.change(kinds.RESOURCE_SLICE, "n1-x", devices=[late("d0"), late("d1")])
    cluster.settle()
    assert where(cluster, "a") == ("", "n1")


def test_after_ten_minutes_the_scheduler_tries_anew(cluster: Cluster) -> None:
    before = cluster.claim_of("a")["status"]["allocation"]["allocationTimestamp"]
    cluster.clock.pass_seconds(599)
    cluster.settle()
    assert cluster.said("a") == [pending("n1")]

    cluster.clock.pass_seconds(1)
    cluster.settle()
    assert failed(cluster, "a", "device binding timeout: context deadline exceeded")
    no_node = "0/1 nodes are available: 1 resourceclaim not available on the node."
    assert f"FailedScheduling: {no_node} {GIVEN_UP}, {NOT_HELPFUL.format(n=1)}" in cluster.said("a")
    assert where(cluster, "a") == ("", "n1")
    assert cluster.claim_of("a")["status"]["allocation"]["allocationTimestamp"] != before
    say(cluster, cluster.claim_of("a"), ready="True")
    assert where(cluster, "a") == ("n1", "")


def test_who_joins_later_waits_no_longer_than_the_claim(cluster: Cluster) -> None:
    name = cluster.claim_of("a")["metadata"]["name"]
    cluster.clock.pass_seconds(400)
    cluster.add(pod("b", resourceClaims=[{"name": "gpu", "resourceClaimName": name}]))
    cluster.settle()
    assert cluster.said("b") == [pending("n1")]
    cluster.clock.pass_seconds(200)
    cluster.settle()
    assert failed(cluster, "a", "device binding timeout: context deadline exceeded")
    assert failed(cluster, "b", f"device binding timeout: claim={name}")
    assert {each["name"] for each in cluster.claim_of("a")["status"]["reservedFor"]} == {"a", "b"}
    say(cluster, cluster.claim_of("a"), ready="True")
    assert [where(cluster, each)[0] for each in "ab"] == ["n1", "n1"]


@pytest.mark.parametrize("finalizers", [[], ["x.example.com/log"]])
def test_a_pod_that_is_deleted_while_it_waits_gives_its_device_back(cluster: Cluster, finalizers: list[str]) -> None:
    kept = cluster.pod("a")
    cluster.hands.replace(kinds.POD, kept | {"metadata": kept["metadata"] | {"finalizers": finalizers}})
    cluster.add(pod("b", "one"))
    cluster.settle()
    assert where(cluster, "b") == ("", "")
    cluster.hands.delete(cluster.pod("a"))
    cluster.settle()
    assert where(cluster, "b") == ("", "n1")
    cluster.clock.pass_seconds(600)
    cluster.settle()
    assert not [each for each in cluster.said("a") if each.startswith("FailedScheduling")]


def test_an_allocation_that_somebody_takes_away_binds_no_pod(cluster: Cluster) -> None:
    nothing = {"allocation": None, "devices": None, "reservedFor": None}
    cluster.hands.set_status(kinds.RESOURCE_CLAIM, cluster.claim_of("a"), nothing)
    cluster.settle()
    assert where(cluster, "a") == ("", "n1")
    cluster.clock.pass_seconds(600)
    cluster.settle()
    assert failed(cluster, "a", "device binding timeout: context deadline exceeded")
    assert allocated(cluster.claim_of("a"))


def test_a_claim_that_somebody_takes_away_binds_no_pod(cluster: Cluster) -> None:
    claim = cluster.claim_of("a")
    cluster.hands.delete(without_finalizer(cluster.hands, claim))
    cluster.settle()
    assert failed(cluster, "a", f'could not find ResourceClaim "{NAMESPACE}/{claim["metadata"]["name"]}"')
    assert where(cluster, "a") == ("", "n1")
    assert cluster.claim_of("a")["metadata"]["uid"] != claim["metadata"]["uid"]


def test_a_pod_that_waits_takes_up_room_on_its_node() -> None:
    cluster = of_nodes("n1")
    cluster.add(pod("a", "one", requests={"cpu": "40"}))
    cluster.settle()
    cluster.add(pod("b", requests={"cpu": "40"}))
    cluster.settle()
    assert where(cluster, "a") == ("", "n1")
    assert "Insufficient cpu" in cluster.said("b")[0]


def test_the_claim_of_extended_resources_is_made_anew() -> None:
    cluster = Cluster()
    cluster.add(node("n1"), slice_of("n1", late("d0")), device_class("x", extendedResourceName="x.example.com/gpu"))
    amount: dict[str, Any] = {"x.example.com/gpu": "1"}
    container = {"name": "c", "image": "x", "resources": {"requests": amount, "limits": amount}}
    cluster.add(pod("a", containers=[container]))
    cluster.settle()
    (first,) = cluster.store.all(kinds.RESOURCE_CLAIM)
    assert where(cluster, "a") == ("", "n1")
    cluster.change(kinds.RESOURCE_SLICE, "n1-x", devices=[late("d0"), late("d1")])
    say(cluster, first, failed="True")
    (second,) = cluster.store.all(kinds.RESOURCE_CLAIM)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert cluster.pod("a")["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == second["metadata"]["name"]
    say(cluster, second, ready="True")
    assert where(cluster, "a") == ("n1", "")
