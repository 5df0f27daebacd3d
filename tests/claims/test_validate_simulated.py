"""Validate on the simulator's API server with the chart's roles: what the demo shows."""

from __future__ import annotations

from html import unescape
from urllib.parse import parse_qsl

import pytest
from django.test import Client

from portal.models import Team, TeamNamespace
from tests.claims.rows import KEY, QUERY
from tests.simulator.serving import Served

pytestmark = pytest.mark.usefixtures("fleet")


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
