"""What a new form begins with."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from tests.claims.rows import CLASS_KEY, put, put_gpu_class, quota, template
from tests.gpuinventory.fleet import claim, device

pytestmark = pytest.mark.usefixtures("fleet")


def begun(client: Client, query: str = "") -> dict[str, str]:
    """The values of a new form's address, without its number."""
    answer = client.get(f"/request/?{query}")
    assert answer.status_code == 302
    values = dict(parse_qsl(urlsplit(answer["Location"]).query))
    assert len(values.pop("form")) == 16
    return values


def test_the_first_class_that_can_be_had_and_a_name_after_it(as_alice: Client) -> None:
    """`anything`, which comes before, has no selector: nobody knows what it gives."""
    assert begun(as_alice) == {"ns": "ml-team", "class": "h100-shared", "name": "h100-shared-job"}
    assert as_alice.get("/request/", follow=True).status_code == 200


def test_classes_that_are_closed_here_are_passed_over(as_alice: Client) -> None:
    put_gpu_class("a-first", deviceClass={"name": "h100-shared"}, namespaces=["inference-team"])
    assert begun(as_alice)["class"] == "physical-gpu"
    put("ResourceQuota", quota({CLASS_KEY: "0"}, {}))
    assert "class" not in begun(as_alice)


def test_nothing_is_chosen_where_nothing_is_free(as_alice: Client) -> None:
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0"), device("node-1", "gpu-1")]))
    assert begun(as_alice) == {"ns": "ml-team"}


def test_a_class_brings_its_defaults_and_what_is_given_stays(as_alice: Client) -> None:
    memory = {"min": "10Gi", "max": "60Gi", "default": "20Gi"}
    put_gpu_class("it", mode="share", memory=memory, share={"min": 5, "max": 50, "step": 5, "default": 25})
    expected = {"ns": "ml-team", "class": "it", "name": "it-job", "share": "25", "memory": "20Gi"}
    assert begun(as_alice, "class=it") == expected
    assert begun(as_alice, "class=it&memory=30Gi&name=mine") == expected | {"memory": "30Gi", "name": "mine"}


def test_a_class_that_is_not_there_brings_nothing(as_alice: Client) -> None:
    assert begun(as_alice, "class=gone") == {"ns": "ml-team", "class": "gone"}


def test_a_namespace_of_others_tells_nothing_of_what_it_has(as_alice: Client) -> None:
    put("ResourceClaimTemplate", template("inference-team", "h100-shared-job"))
    assert begun(as_alice, "ns=inference-team") == {"ns": "inference-team"}


def test_a_name_that_is_taken_is_counted_on(as_alice: Client) -> None:
    put("ResourceClaimTemplate", template("ml-team", "h100-shared-job"), template("ml-team", "h100-shared-job-2"))
    assert begun(as_alice)["name"] == "h100-shared-job-3"
