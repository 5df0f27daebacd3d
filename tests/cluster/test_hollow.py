"""Hollow nodes: the scheduler takes them for nodes, a cordon keeps pods away, and nothing is left of them."""

from collections.abc import Sequence
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.hollow import HollowNodes
from tests.cluster.pods import busybox_pod, create_pod, delete_pod
from tests.cluster.waiting import wait_until

POD = "/api/v1/namespaces/default/pods/on-hollow"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def one_slice(node: str) -> Sequence[dict[str, Any]]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "hollow.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}]


def pinned_pod() -> dict[str, Any]:
    # Only to nodes that are hollow, since the suite's real node may be there too.
    return busybox_pod("on-hollow", nodeSelector={"kubernetes.io/hostname": "hollow-open"})


def test_pods_are_bound_to_an_open_node_and_not_to_a_cordoned_one(cluster: Cluster, hollow_nodes: HollowNodes) -> None:
    hollow_nodes.make(["hollow-shut"], cordoned=True)
    pod = pinned_pod()
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "hollow-shut"}
    create_pod(cluster, pod)

    def refused() -> str:
        conditions = cluster.call("GET", POD)["status"].get("conditions", ())
        return "".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")

    assert "1 node(s) were unschedulable" in wait_until(refused, "the scheduler's refusal")
    delete_pod(cluster, "on-hollow")

    hollow_nodes.make(["hollow-open"])
    create_pod(cluster, pinned_pod())
    assert wait_until(lambda: cluster.call("GET", POD)["spec"].get("nodeName"), "a bound pod") == "hollow-open"
    cluster.kubectl("delete", "pod", "on-hollow", "--grace-period=0", "--force")


def test_slices_come_and_go_with_their_nodes(cluster: Cluster, hollow_nodes: HollowNodes) -> None:
    names = [f"hollow-{number:03}" for number in range(40)]
    hollow_nodes.make(names, one_slice)
    published = [
        each for each in cluster.call("GET", SLICES)["items"] if each["spec"]["driver"] == "hollow.example.com"
    ]
    assert sorted(each["spec"]["nodeName"] for each in published) == names

    hollow_nodes.remove_all()
    assert not {each["metadata"]["name"] for each in cluster.call("GET", "/api/v1/nodes")["items"]} & set(names)
    left = cluster.call("GET", SLICES)["items"]
    assert [each for each in left if each["spec"]["driver"] == "hollow.example.com"] == []
