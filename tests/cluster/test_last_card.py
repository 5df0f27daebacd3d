"""Two people create for the last card at once: the real scheduler gives it to one, and the other's page says so.

Created by the form's own POST as the chart's web account; the read model is filled from what the API server has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from claims.models import GpuRequest
from gpuinventory.selectors import held
from tests.claims.pages import create_form
from tests.claims.rows import put
from tests.cluster.chart import apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.hollow import HollowNodes
from tests.cluster.waiting import wait_until

SYSTEM, DRIVER, CLASS, NODE = "portico-system", "last.example.com", "last-card", "hollow-last"
TEAMS = {"ml-team": ["ml-team"], "inference-team": ["inference-team"]}
RESOURCES = "/apis/resource.k8s.io/v1"
LISTS = {
    "DeviceClass": f"{RESOURCES}/deviceclasses",
    "ResourceSlice": f"{RESOURCES}/resourceslices",
    "ResourceClaim": f"{RESOURCES}/resourceclaims",
    "ResourceClaimTemplate": f"{RESOURCES}/resourceclaimtemplates",
    "Node": "/api/v1/nodes",
}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def portal(cluster: Cluster, hollow_nodes: HollowNodes, settings: Settings) -> Iterator[None]:
    """A node with one card, its class, both teams' rights, and the portal's way to the cluster."""
    made = apply_roles(cluster, namespace=SYSTEM, teams=TEAMS, driver_name=DRIVER, prefix="portico:")
    cluster.service_account_kubeconfig(SYSTEM, made.web)
    settings.KUBECONFIG = str(cluster.kubeconfig(f"system:serviceaccount:{SYSTEM}:{made.web}"))
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
    cluster.apply(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": spec}
    )
    hollow_nodes.make([NODE], one_card)
    follow(cluster)
    yield
    for namespace in TEAMS:
        kinds = "pods,resourceclaimtemplates"
        cluster.kubectl("delete", kinds, "--all", "-n", namespace, "--force", "--grace-period=0")


def one_card(node: str) -> Sequence[Mapping[str, Any]]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-0"}, "spec": spec}
    ]


def follow(cluster: Cluster) -> None:
    """The read model has what the API server has."""
    for kind, path in LISTS.items():
        put(kind, *(json.dumps(each | {"kind": kind}).encode() for each in cluster.call("GET", path)["items"]))
    held.forget()


def create(client: Client, cluster: Cluster, namespace: str) -> GpuRequest:
    """The template by the form's button, and its pod by the form's file."""
    query = urlencode({"ns": namespace, "name": "last", "class": CLASS, "form": f"number0{namespace.replace('-', '')}"})
    sent = create_form(client.get(f"/request/?{query}").content.decode())
    assert client.post("/requests/", sent).status_code == 303
    cluster.kubectl("apply", "-f", "-", input=client.get(f"/request/pod.yaml?{query}").content.decode())
    return GpuRequest.objects.get(namespace=namespace)


def given(cluster: Cluster) -> list[str]:
    """The namespaces whose claim holds the card."""
    claims = cluster.call("GET", LISTS["ResourceClaim"])["items"]
    mine = [each for each in claims if each["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == CLASS]
    return [each["metadata"]["namespace"] for each in mine if each.get("status", {}).get("allocation")]


def refused(cluster: Cluster, namespace: str) -> str:
    """What the scheduler says of a pod that it can't place."""
    conditions = cluster.call("GET", f"/api/v1/namespaces/{namespace}/pods/last")["status"].get("conditions", [])
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


def test_one_gets_it_and_the_other_reads_so(cluster: Cluster, as_alice: Client, as_charlie: Client) -> None:
    """Before, both read that it fits."""
    people = {"ml-team": as_alice, "inference-team": as_charlie}
    rows = {namespace: create(client, cluster, namespace) for namespace, client in people.items()}
    (winner,) = wait_until(lambda: given(cluster), "one of the two claims to get the card")
    (loser,) = people.keys() - {winner}
    assert "cannot allocate all claims" in wait_until(lambda: refused(cluster, loser), "a word about the other pod")
    follow(cluster)

    said = page(people[loser], rows[loser])
    assert "Will wait: 0 of 1 matching devices are free, and no claim is ahead." in said
    assert winner not in said
    assert "Will wait" not in page(people[winner], rows[winner])


def page(client: Client, row: GpuRequest) -> str:
    html = client.get(f"/requests/{row.pk}/").content.decode()
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))
