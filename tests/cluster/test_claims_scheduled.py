"""The real scheduler gives what a wish says: memory as a floor that consumes nothing, shares that fill a card.

On a hollow node with two H100 of our own inventory, and a device of another driver that publishes no memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from claims.manifests import render
from claims.wish import ClassFacts, Wish
from dra.quantity import parse_quantity
from tests.cluster.cluster import Cluster
from tests.cluster.hollow import HollowNodes
from tests.cluster.waiting import wait_until
from tests.gpuinventory.fleet import slices_of

NAMESPACE = "scheduled"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLASSES = {
    "whole-gpu": 'device.driver == "gpu.portico.dev" && device.attributes["gpu.portico.dev"].deviceType == "Physical"',
    "anything": "",
}


@pytest.fixture(scope="module", autouse=True)
def namespace(cluster: Cluster) -> None:
    """The namespace and the classes of these tests."""
    cluster.make_namespace(NAMESPACE)
    for name, expression in CLASSES.items():
        selectors = [{"cel": {"expression": expression}}] if expression else []
        spec = {"selectors": selectors}
        cluster.apply(
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}
        )


@pytest.fixture(autouse=True)
def node(hollow_nodes: HollowNodes, cluster: Cluster) -> Iterator[None]:
    """The node; its pods are gone before it is."""
    hollow_nodes.make(["hollow-claims"], slices)
    yield
    cluster.kubectl("delete", "pods,resourceclaimtemplates", "--all", "-n", NAMESPACE, "--force", "--grace-period=0")


def slices(node: str) -> Sequence[Mapping[str, Any]]:
    """Ours, and one whose device says nothing about memory and comes first in the scheduler's order."""
    ours = [json.loads(body) for body in slices_of(node, cards=2)]
    for each in ours:
        for key in ("uid", "resourceVersion", "ownerReferences"):
            each["metadata"].pop(key, None)
    bare = {"nodeName": node, "pool": {"name": "a-bare", "generation": 1, "resourceSliceCount": 1}}
    foreign = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-bare"},
        "spec": {"driver": "a.example.com", **bare, "devices": [{"name": "bare"}]},
    }
    return [foreign, *ours]


def start(cluster: Cluster, **wish: Any) -> str:
    """A pod of this wish; its name."""
    asked = Wish(namespace=NAMESPACE, **wish)
    files = render(asked, ClassFacts(name=asked.device_class, driver="gpu.portico.dev"), "0123456789abcdef")
    cluster.kubectl("apply", "-f", "-", input=files.template.text)
    cluster.kubectl("apply", "-f", "-", input=files.pod.text)
    return asked.name


def claim_of(cluster: Cluster, pod: str) -> dict[str, Any] | None:
    items = cluster.call("GET", CLAIMS)["items"]
    return next((each for each in items if each["metadata"]["ownerReferences"][0]["name"] == pod), None)


def results(cluster: Cluster, pod: str) -> list[dict[str, Any]]:
    """The devices of the pod's claim, as soon as there are some."""

    def allocated() -> list[dict[str, Any]]:
        claim = claim_of(cluster, pod) or {}
        found: list[dict[str, Any]] = (
            claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        )
        return found

    return wait_until(allocated, f"devices for pod {pod}")


def message(cluster: Cluster, pod: str) -> str:
    """Why the pod waits, as soon as the scheduler says so."""

    def said() -> str:
        conditions = cluster.call("GET", f"{PODS}/{pod}")["status"].get("conditions", [])
        return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")

    return wait_until(said, f"a word about pod {pod}")


def test_memory_of_whole_devices_is_a_floor_and_consumes_nothing(cluster: Cluster) -> None:
    given = results(
        cluster, start(cluster, name="floor", device_class="whole-gpu", memory=parse_quantity("40Gi"), count=2)
    )
    assert [each["device"] for each in given] == ["gpu-0", "gpu-1"]
    assert [each["consumedCapacity"] for each in given] == [{"memory": "0", "sharePercent": "100"}] * 2


def test_a_floor_above_every_device_keeps_the_pod_waiting_without_an_error(cluster: Cluster) -> None:
    pod = start(cluster, name="above", device_class="whole-gpu", memory=parse_quantity("100Gi"))
    assert "cannot allocate all claims" in message(cluster, pod)


def test_a_device_without_memory_is_no_match_and_no_error(cluster: Cluster) -> None:
    pod = start(cluster, name="guarded", device_class="anything", memory=parse_quantity("40Gi"))
    assert results(cluster, pod)[0]["driver"] == "gpu.portico.dev"


def test_shares_fill_one_device_and_the_next_goes_to_another(cluster: Cluster) -> None:
    wishes = [("a", 25), ("b", 25), ("c", 50), ("d", 25)]
    given = {
        name: results(
            cluster, start(cluster, name=name, device_class="whole-gpu", share=share, memory=parse_quantity("10Gi"))
        )
        for name, share in wishes
    }
    assert [given[name][0]["device"] for name, _ in wishes] == ["gpu-0", "gpu-0", "gpu-0", "gpu-1"]
    assert given["a"][0]["consumedCapacity"] == {"memory": "10Gi", "sharePercent": "25"}


def test_claims_carry_the_label_of_their_request(cluster: Cluster) -> None:
    pod = start(cluster, name="labelled", device_class="whole-gpu")
    results(cluster, pod)
    claim = claim_of(cluster, pod)
    assert claim is not None
    assert claim["metadata"]["labels"] == {"portico.dev/request": "0123456789abcdef"}
