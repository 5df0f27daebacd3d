"""Which node a pod comes to, what is written, and what is said where it stays.

Each message was read from kube-scheduler 1.37.2 on two hollow nodes with the same objects.
"""

from typing import Any

import pytest

from simulator import kinds
from tests.simulator.clusters import (
    DRIVER,
    NAMESPACE,
    Cluster,
    device_class,
    node,
    pod,
    slice_of,
    small,
    template,
    template_of,
)

NOT_HELPFUL = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


@pytest.fixture
def cluster() -> Cluster:
    made = small()
    made.add(template("one"))
    return made


def scheduled(cluster: Cluster, name: str) -> dict[str, object]:
    """The condition PodScheduled."""
    conditions = cluster.pod(name)["status"]["conditions"]
    found: dict[str, object] = next(each for each in conditions if each["type"] == "PodScheduled")
    return found


def stays(cluster: Cluster, name: str) -> str:
    """Why a pod stays, when event and condition say the same."""
    (event,) = cluster.events(name)
    condition = scheduled(cluster, name)
    assert (event["reason"], condition["status"]) == ("FailedScheduling", "False")
    assert condition["message"] == event["message"]
    assert "nodeName" not in cluster.pod(name)["spec"]
    return str(event["message"])


def test_a_pod_gets_its_device_and_its_node(cluster: Cluster) -> None:
    cluster.add(pod("ok", "one"))
    cluster.settle()
    where = cluster.pod("ok")["spec"]["nodeName"]
    assert where in {"n1", "n2"}
    status = cluster.claim_of("ok")["status"]
    field = {"key": "metadata.name", "operator": "In", "values": [where]}
    assert status["allocation"] == {
        "devices": {"results": [{"request": "gpu", "driver": DRIVER, "pool": where, "device": "d0"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        "allocationTimestamp": "2026-11-30T07:00:00Z",
    }
    uid = cluster.pod("ok")["metadata"]["uid"]
    assert status["reservedFor"] == [{"resource": "pods", "name": "ok", "uid": uid}]
    assert scheduled(cluster, "ok")["status"] == "True"
    assert cluster.said("ok") == [f"Scheduled: Successfully assigned {NAMESPACE}/ok to {where}"]


def test_each_device_is_given_once_and_the_third_pod_waits_for_the_first_to_end(cluster: Cluster) -> None:
    cluster.add(pod("a", "one"), pod("b", "one"))
    cluster.settle()
    assert {cluster.pod(name)["spec"]["nodeName"] for name in "ab"} == {"n1", "n2"}
    cluster.add(pod("c", "one"))
    cluster.settle()
    assert stays(cluster, "c") == f"0/2 nodes are available: 2 cannot allocate all claims. {NOT_HELPFUL}"
    cluster.finish("a")
    cluster.settle()
    assert cluster.pod("c")["spec"]["nodeName"] == cluster.pod("a")["spec"]["nodeName"]


def test_what_stays_is_tried_again_only_when_something_changed(cluster: Cluster) -> None:
    cluster.add(template("two", count=2), pod("cannot", "two"))
    cluster.settle()
    cluster.settle()
    assert cluster.events("cannot")[0]["count"] == 1
    cluster.add(node("n3"), slice_of("n3", {"name": "d0"}, {"name": "d1"}))
    cluster.settle()
    assert cluster.pod("cannot")["spec"]["nodeName"] == "n3"


def test_a_missing_class(cluster: Cluster) -> None:
    cluster.add(template("none", "missing"), pod("noclass", "none"))
    cluster.settle()
    expected = f"0/2 nodes are available: request gpu: device class missing does not exist. {NOT_HELPFUL}"
    assert stays(cluster, "noclass") == expected


def test_a_selector_that_fails_ends_the_attempt_with_the_schedulers_error(cluster: Cluster) -> None:
    selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].nope == 1'}}
    cluster.add(template("bad", selectors=[selector]), pod("bad", "bad"))
    cluster.settle()
    assert stays(cluster, "bad") == (
        f'running "DynamicResources" filter plugin: claim t/{cluster.claim_of("bad")["metadata"]["name"]}: '
        "selector #0 on device x.example.com/n1/d0: CEL runtime error: no such key: nope. consider using CEL optional "
        "chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )
    assert scheduled(cluster, "bad")["reason"] == "SchedulerError"


def test_a_pod_too_big_for_any_node(cluster: Cluster) -> None:
    cluster.add(pod("big", requests={"cpu": "100"}))
    cluster.settle()
    assert stays(cluster, "big") == f"0/2 nodes are available: 2 Insufficient cpu. {NOT_HELPFUL}"


def test_pods_spread_and_the_third_finds_no_room(cluster: Cluster) -> None:
    for name in ("m1", "m2", "m3"):
        cluster.add(pod(name, requests={"cpu": "40"}))
        cluster.settle()
    assert {cluster.pod(name)["spec"]["nodeName"] for name in ("m1", "m2")} == {"n1", "n2"}
    assert stays(cluster, "m3") == (
        "0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )


def test_a_node_selector(cluster: Cluster) -> None:
    cluster.add(pod("sel", nodeSelector={"a": "b"}), pod("n2-only", nodeSelector={"kubernetes.io/hostname": "n2"}))
    cluster.settle()
    expected = f"0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}"
    assert stays(cluster, "sel") == expected
    assert cluster.pod("n2-only")["spec"]["nodeName"] == "n2"


def test_a_tainted_and_a_cordoned_node(cluster: Cluster) -> None:
    cluster.change(kinds.NODE, "n1", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    cluster.change(kinds.NODE, "n2", unschedulable=True)
    tolerant = [{"key": "a", "operator": "Exists"}]
    cluster.add(pod("taint", "one"), pod("tolerant", tolerations=tolerant))
    cluster.settle()
    assert stays(cluster, "taint") == (
        f"0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. {NOT_HELPFUL}"
    )
    assert cluster.pod("tolerant")["spec"]["nodeName"] == "n1"


def test_an_extended_resource_is_served_by_a_claim_of_the_schedulers_own(cluster: Cluster) -> None:
    cluster.add(
        device_class("q", extendedResourceName="x.example.com/q"),
        pod("e1", requests={"x.example.com/q": "1"}),
        pod("e2", requests={"nobody.example.com/q": "1"}),
    )
    cluster.settle()
    status = cluster.pod("e1")["status"]["extendedResourceClaimStatus"]
    mapping = {"containerName": "c", "resourceName": "x.example.com/q", "requestName": "container-0-request-0"}
    assert status["requestMappings"] == [mapping]
    claim = cluster.store.get(kinds.RESOURCE_CLAIM, status["resourceClaimName"], NAMESPACE)
    assert claim["metadata"]["generateName"] == "e1-extended-resources-"
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    request = {"deviceClassName": "q", "allocationMode": "ExactCount", "count": 1}
    assert claim["spec"] == {"devices": {"requests": [{"name": "container-0-request-0", "exactly": request}]}}
    assert claim["status"]["reservedFor"][0]["name"] == "e1"
    assert cluster.pod("e1")["spec"]["nodeName"]
    assert stays(cluster, "e2") == f"0/2 nodes are available: 2 Insufficient nobody.example.com/q. {NOT_HELPFUL}"


def test_no_nodes_at_all() -> None:
    empty = Cluster()
    empty.add(pod("p"))
    empty.settle()
    assert stays(empty, "p") == "no nodes available to schedule pods"


def test_a_higher_priority_goes_first() -> None:
    cluster = small()
    cluster.add(template("one"), {**_priority("high", 1000)})
    cluster.add(pod("a", "one"), pod("b", "one"), pod("vip", "one", priorityClassName="high"))
    cluster.settle()
    assert cluster.pod("vip")["spec"]["nodeName"]
    assert ["nodeName" in cluster.pod(name)["spec"] for name in "ab"] == [True, False]


def _priority(name: str, value: int) -> dict[str, object]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return kind | {"metadata": {"name": name}, "value": value}


def test_the_first_alternative_wins_over_the_emptier_node() -> None:
    cluster = small()
    fast, slow = ({"name": "d1", "attributes": {"kind": {"string": kind}}} for kind in ("fast", "slow"))
    cluster.add(node("n3"), slice_of("n3", fast), node("n4", cpu="640"), slice_of("n4", slow))
    of_kind = f'device.attributes["{DRIVER}"].?kind.orValue("") == '
    alternatives = [
        {"name": kind, "deviceClassName": "x", "selectors": [{"cel": {"expression": f'{of_kind}"{kind}"'}}]}
        for kind in ("fast", "slow")
    ]
    cluster.add(template_of("either", {"name": "gpu", "firstAvailable": alternatives}))
    cluster.add(pod("a", "either", requests={"cpu": "1"}), pod("b", "either", requests={"cpu": "1"}))
    cluster.settle()
    assert [cluster.pod(name)["spec"]["nodeName"] for name in "ab"] == ["n3", "n4"]
    assert cluster.claim_of("b")["status"]["allocation"]["devices"]["results"][0]["request"] == "gpu/slow"


def shared(name: str) -> dict[str, object]:
    policy = {"default": "50", "validRange": {"min": "1", "max": "100"}}
    return {
        "name": name,
        "allowMultipleAllocations": True,
        "capacity": {"share": {"value": "100", "requestPolicy": policy}},
    }


def test_shares_of_one_device_have_ids_of_their_own() -> None:
    cluster = Cluster()
    cluster.add(node("n1"), slice_of("n1", shared("d0")), device_class("x"), template("half"))
    cluster.add(pod("a", "half"), pod("b", "half"), pod("c", "half"))
    cluster.settle()
    given = [cluster.claim_of(name)["status"]["allocation"]["devices"]["results"][0] for name in "ab"]
    assert [each["consumedCapacity"] for each in given] == [{"share": "50"}] * 2
    assert len({each["shareID"] for each in given}) == 2
    assert "nodeName" not in cluster.pod("c")["spec"]


@pytest.mark.parametrize("spec", [{"schedulerName": "other"}, {"schedulingGates": [{"name": "g"}]}, {"nodeName": "n2"}])
def test_pods_that_are_not_this_schedulers_are_left_alone(cluster: Cluster, spec: dict[str, Any]) -> None:
    cluster.add(pod("p", "one", **spec))
    cluster.settle()
    assert cluster.said("p") == []
    assert "allocation" not in cluster.claim_of("p").get("status", {})
