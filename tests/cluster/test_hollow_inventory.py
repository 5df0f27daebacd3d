"""Hollow nodes with slices from the production inventory: the real scheduler allocates their devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.silicon.fleet import initialise
from tests.cluster.cluster import Cluster
from tests.cluster.hardware import facts_of, slices_for
from tests.cluster.hollow import HollowNodes
from tests.cluster.pods import busybox_pod, create_pod, delete_pod
from tests.cluster.waiting import wait_until

DRIVER = "hollow.portico.test"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def device_class() -> dict[str, Any]:
    expression = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].migProfile == "1g.18gb"'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "hollow"}, "spec": spec}


def test_a_pod_is_bound_to_a_hollow_node_with_one_of_its_devices(
    cluster: Cluster, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    facts = facts_of(initialise(tmp_path / "machine", "h200x8"))
    names = ["hollow-a", "hollow-b"]
    hollow_nodes.make(names, lambda name: slices_for(cluster, DRIVER, name, facts))
    request = {"name": "part", "exactly": {"deviceClassName": "hollow"}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "hollow"},
        "spec": {"devices": {"requests": [request]}},
    }
    cluster.apply(device_class(), claim)
    create_pod(cluster, busybox_pod("hollow", resourceClaims=[{"name": "gpu", "resourceClaimName": "hollow"}]))

    def allocation() -> dict[str, Any] | None:
        found: dict[str, Any] = cluster.call("GET", f"{CLAIMS}/hollow").get("status", {})
        return found.get("allocation")

    (result,) = wait_until(allocation, "an allocation")["devices"]["results"]
    pod = wait_until(lambda: cluster.call("GET", "/api/v1/namespaces/default/pods/hollow"), "the pod")

    assert result["pool"] in names
    # The published order is the policy: 1g at start 6 of the first card leaves the most choices.
    assert result["device"] == "gpu-0-mig-1g18gb-6"
    assert result["consumedCapacity"] == {"sharePercent": "100", "memory": "0"}
    assert pod["spec"].get("nodeName") in (None, result["pool"])
    delete_pod(cluster, "hollow")
    cluster.kubectl("delete", "resourceclaim", "hollow")
