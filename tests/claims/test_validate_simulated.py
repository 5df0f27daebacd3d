"""Validate on the simulator's API server with the chart's roles: what the demo shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
import yaml
from django.test import Client
from pytest_django.fixtures import Settings

from dra.kube import requests
from dra.kube.requests import NAMESPACES, Resource
from portal.models import Team, TeamNamespace
from simulator.world import ROLES
from tests.claims.rows import KEY, QUERY
from tests.simulator.serving import Served, serving

pytestmark = pytest.mark.usefixtures("fleet")


@pytest.fixture
def simulated(settings: Settings, tmp_path: Path) -> Iterator[Served]:
    """A server with the roles of the demo."""
    with serving(tmp_path) as served:
        for namespace in ("portico-system", "ml-team", "inference-team"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            served.client.send(requests.create(NAMESPACES, json.dumps(body).encode()))
        for document in yaml.safe_load_all(ROLES.read_text()):
            group, _, version = document["apiVersion"].rpartition("/")
            plural = f"{document['kind'].lower()}s"
            resource = Resource(
                group, version, plural, document["kind"], namespaced="namespace" in document["metadata"]
            )
            namespace = document["metadata"].get("namespace", "")
            served.client.send(requests.create(resource, json.dumps(document).encode(), namespace=namespace))
        settings.KUBECONFIG = str(tmp_path / "kubeconfig")
        yield served


def panel(client: Client, more: str) -> str:
    answer = client.post("/request/validate", dict(parse_qsl(f"{QUERY}&form={KEY}&{more}")))
    assert answer.status_code == 200
    text = unescape(answer.content.decode()).split('id="validation"')[1].split("</div>")[0]
    return " ".join(text.replace("<strong>", "").replace("</strong>", "").split())


@pytest.mark.parametrize(
    "more",
    [
        "workload=pod",
        "workload=pod&claim=shared",
        "workload=pod&style=extended",
        "workload=deployment&scale.max=3",
        "workload=job",
        "workload=statefulset&preset=notebook",
        "workload=deployment&preset=nim",
    ],
)
def test_every_kind_of_file_is_taken(as_alice: Client, simulated: Served, more: str) -> None:
    assert "The API server would take all of it." in panel(as_alice, more)


def test_a_namespace_of_others_is_refused_with_the_check(as_alice: Client, simulated: Served, ml_team: Team) -> None:
    TeamNamespace.objects.create(team=ml_team, namespace="inference-team")
    text = panel(as_alice, "workload=pod&ns=inference-team")
    assert "The API server would refuse 2 of 2." in text
    assert "kubectl auth can-i create pods --namespace=inference-team --as=portico:alice" in text
