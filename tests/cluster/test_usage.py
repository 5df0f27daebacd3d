"""What pods take of a node, as the read model has it, against the real scheduler: the rest fits exactly, no more."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from dra.fleet import Fleet, PodNeeds, Wish
from gpuinventory.selectors import held
from gpuinventory.services.stream import run_stream
from tests.cluster.cluster import Cluster
from tests.cluster.hollow import HollowNodes
from tests.cluster.test_sync import stream
from tests.cluster.waiting import wait_until

MILLI = 64_000  # what a hollow node has of CPU


def container(name: str, cpu: str | None = None, **more: Any) -> dict[str, Any]:
    requests = {"requests": {"cpu": cpu}} if cpu else {}
    return {"name": name, "image": "example.invalid/x", "resources": requests, **more}


def pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [], **spec}}


# By name: a pod's spec and what it takes, in thousandths of a CPU.
PODS: dict[str, tuple[dict[str, Any], int]] = {
    "two-containers": ({"containers": [container("a", "1500m"), container("b", "2")]}, 3500),
    "nothing-asked": ({"containers": [container("a")]}, 0),
    "large-init": ({"initContainers": [container("i", "5")], "containers": [container("a", "1")]}, 5000),
    "sidecars": (
        {
            "initContainers": [
                container("s", "1", restartPolicy="Always"), container("i", "4"),
                container("t", "500m", restartPolicy="Always"),
            ],
            "containers": [container("a", "2")],
        },
        5000,
    ),
    "pod-level": ({"containers": [container("a", "1")], "resources": {"requests": {"cpu": "7"}}}, 7000),
    "by-overhead": ({"containers": [container("a", "1")], "runtimeClassName": "usage-overhead"}, 1250),
}  # fmt: skip


@pytest.mark.django_db
def test_exactly_the_rest_fits_and_no_more(cluster: Cluster, hollow_nodes: HollowNodes) -> None:
    node, namespace = f"usage-{uuid.uuid4().hex[:8]}", f"usage-{uuid.uuid4().hex[:8]}"
    hollow_nodes.make([node])
    cluster.make_namespace(namespace)
    cluster.apply({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "usage-overhead"},
        "handler": "runc", "overhead": {"podFixed": {"cpu": "250m"}},
    })  # fmt: skip
    path = f"/api/v1/namespaces/{namespace}/pods"
    here = {"nodeSelector": {"kubernetes.io/hostname": node}}

    def place(name: str, spec: dict[str, Any]) -> None:
        cluster.call("POST", path, pod(name, {**here, **spec}))
        wait_until(lambda: cluster.call("GET", f"{path}/{name}")["spec"].get("nodeName") == node, f"{name} on {node}")

    for name, (spec, _) in PODS.items():
        place(name, spec)
    cluster.call("POST", path, pod("waits", {"containers": [container("a", "65")], **here}))  # on no node: counts not
    finished = pod("finished", {"containers": [container("a", "9")], **here})
    cluster.call("POST", path, finished)
    wait_until(lambda: cluster.call("GET", f"{path}/finished")["spec"].get("nodeName") == node, "finished placed")
    done = cluster.call("GET", f"{path}/finished")
    cluster.call("PUT", f"{path}/finished/status", done | {"status": {"phase": "Succeeded"}})

    left = MILLI - sum(milli for _, milli in PODS.values())
    assert rest(cluster, node) == (left, 250 - len(PODS))
    place("all-the-rest", {"containers": [container("a", f"{left}m")]})
    assert rest(cluster, node) == (0, 250 - len(PODS) - 1)
    cluster.call("POST", path, pod("one-more", {"containers": [container("a", "1m")], **here}))
    told = wait_until(lambda: refusal(cluster, f"{path}/one-more"), "the scheduler's word about one-more")
    assert "Insufficient cpu" in told
    answer = Fleet().answer(
        held.current().snapshot,
        Wish(resource_claims=(), pod=PodNeeds(node_selector=here["nodeSelector"], requests={"cpu": "1m"})),
        held.current().usage,
    )
    assert answer.nodes == ()
    for name in (*PODS, "waits", "finished", "all-the-rest", "one-more"):
        cluster.call("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})


def rest(cluster: Cluster, node: str) -> tuple[int, int]:
    """CPU in thousandths and places for pods that the read model has left on the node."""
    for kind in ("Node", "Pod"):
        run_stream(stream(cluster.kubeconfig(), kind))
    now = held.current()
    used = now.usage[node]
    assert now.snapshot.nodes[node].status.allocatable["cpu"] == "64"
    return MILLI - used["cpu"].milli_value, 250 - used["pods"].value


def refusal(cluster: Cluster, path: str) -> str:
    conditions = cluster.call("GET", path)["status"].get("conditions", [])
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")
