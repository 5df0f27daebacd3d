"""Two people ask for the last card: both create, one gets it, and the other reads why not, in numbers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from portal.models import Team, User
from tests.claims.desk import words
from tests.claims.rows import KEY, claims_from, gpu_request, put
from tests.gpuinventory.fleet import claim, device

pytestmark = pytest.mark.usefixtures("fleet")
OTHER_KEY = "0a1b2c3d4e5f6071"


def owner(pod: str) -> dict[str, Any]:
    return {
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"u-{pod}", "controller": True}]
    }


@pytest.fixture
def pages(alice: User, ml_team: Team, charlie: User, inference_team: Team) -> tuple[str, str]:
    """Alice's request and Charlie's, and a pod of each; of two cards one is held by somebody else."""
    put("ResourceClaim", claim("research", "held", [device("node-1", "gpu-0")], pods=["p"]))
    first = gpu_request(alice, ml_team)
    second = gpu_request(charlie, inference_team, "secret-model", key=OTHER_KEY)
    put("ResourceClaim", *claims_from(KEY, "ml-team", ["trainer-a"], **owner("trainer")))
    put("ResourceClaim", *claims_from(OTHER_KEY, "inference-team", ["secret-model-b"], **owner("secret-model")))
    return f"/requests/{first.pk}/", f"/requests/{second.pk}/"


def says(client: Client, page: str) -> str:
    """What the request's page says of its waiting, "" where it says nothing."""
    found = re.search(r'<div class="waits".*?</div>', client.get(page).content.decode(), re.DOTALL)
    return words(found[0]) if found else ""


def test_while_both_wait_a_card_is_free_for_either(
    pages: tuple[str, str], as_alice: Client, as_charlie: Client
) -> None:
    assert "Fits now on 1 node, once. Best: node-1." in says(as_alice, pages[0])
    assert "Fits now on 1 node, once. Best: node-1." in says(as_charlie, pages[1])


def test_one_gets_it_and_the_other_reads_so(pages: tuple[str, str], as_alice: Client, as_charlie: Client) -> None:
    got = claims_from(
        KEY,
        "ml-team",
        ["trainer-a"],
        devices=[device("node-1", "gpu-1")],
        pods=["trainer"],
        version=2,
        **owner("trainer"),
    )
    put("ResourceClaim", *got)
    assert says(as_alice, pages[0]) == ""
    said = says(as_charlie, pages[1])
    assert "Will wait: 0 of 2 matching devices are free, and no claim is ahead." in said
    page = as_charlie.get(pages[1]).content.decode()
    for name in ("alice", "ml-team", "trainer", "research"):
        assert name not in page


def test_others_that_wait_for_the_same_class_are_counted(pages: tuple[str, str], as_charlie: Client) -> None:
    put("ResourceClaim", claim("research", "more", [device("node-1", "gpu-1")], pods=["q"]))
    assert "0 of 2 matching devices are free, and 1 claim is ahead." in says(as_charlie, pages[1])


def test_what_would_fit_is_offered_as_a_form(pages: tuple[str, str], as_charlie: Client, charlie: User) -> None:
    put("ResourceClaim", claim("research", "more", [device("node-1", "gpu-1", percent=50)], pods=["q"]))
    charlie.gpu_requests.update(query="ns=inference-team&name=secret-model&class=physical-gpu&count=1&share=75")
    said = says(as_charlie, pages[1])
    assert "What would fit now: 50 % instead of 75 %: fits on 1 node" in said
