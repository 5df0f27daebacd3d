"""The quota strip: what each ResourceQuota of the namespace holds, what this adds, and what the API server will say."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from tests.claims.rows import CLASS_KEY, KEY, QUERY, put, quota

TEMPLATES = "count/resourceclaimtemplates.resource.k8s.io"
pytestmark = pytest.mark.usefixtures("fleet")


def strip(client: Client, more: str = "") -> str:
    html = client.get(f"/request/?{QUERY}{more}&form={KEY}").content.decode()
    found = re.search(r'<section class="card quota".*?</section>', html, re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", found[0]))) if found else ""


def test_a_namespace_without_a_quota_shows_none(as_alice: Client) -> None:
    put("ResourceQuota", quota({CLASS_KEY: "1"}, {}, namespace="inference-team"))
    assert strip(as_alice) == ""


def test_what_is_charged_and_what_a_pod_adds(as_alice: Client) -> None:
    put("ResourceQuota", quota({CLASS_KEY: "8", "requests.cpu": "4"}, {CLASS_KEY: "6"}))
    said = strip(as_alice, "&count=2")
    assert "6 of 8 are charged; a pod of this adds 2: 8 of 8" in said
    assert "enforced by ResourceQuota gpu-quota" in said
    assert "refuse" not in said
    assert "requests.cpu" not in said


def test_over_the_limit_says_what_the_api_server_will_answer(as_alice: Client) -> None:
    put("ResourceQuota", quota({CLASS_KEY: "8"}, {CLASS_KEY: "7"}))
    said = strip(as_alice, "&count=2")
    assert "The API server will refuse the claim of its pod, so the pod would wait" in said
    assert "gpu-quota allows 8, 7 are charged, this adds 2." in said


def test_a_share_is_charged_as_a_whole_device(as_alice: Client) -> None:
    put("ResourceQuota", quota({CLASS_KEY: "1"}, {CLASS_KEY: "0"}))
    assert "a pod of this adds 1: 1 of 1" in strip(as_alice, "&share=25")


def test_a_full_count_of_templates_refuses_the_template_itself(as_alice: Client) -> None:
    put("ResourceQuota", quota({TEMPLATES: "3"}, {TEMPLATES: "3"}))
    assert "The API server will refuse this template: gpu-quota allows 3, 3 are charged" in strip(as_alice)


def test_a_claim_that_pods_share_is_charged_itself_and_makes_no_template(as_alice: Client) -> None:
    put("ResourceQuota", quota({CLASS_KEY: "8", TEMPLATES: "0"}, {CLASS_KEY: "8"}))
    said = strip(as_alice, "&claim=shared")
    assert "8 of 8 are charged; this claim adds 1: 9 of 8" in said
    assert "The API server will refuse this claim: gpu-quota allows 8" in said
    assert TEMPLATES not in said


def test_what_is_over_comes_first(as_alice: Client) -> None:
    put("ResourceQuota", quota({CLASS_KEY: "9"}, {}, name="a-wide"), quota({CLASS_KEY: "0"}, {}, name="b-narrow"))
    said = strip(as_alice)
    assert said.index("b-narrow") < said.index("a-wide")


def test_a_class_with_an_extended_resource_is_charged_by_that_name_too(as_alice: Client) -> None:
    put("ResourceQuota", quota({"requests.gpu.portico.dev/h100": "4"}, {}))
    assert "0 of 4 are charged; a pod of this adds 1: 1 of 4" in strip(as_alice, "&class=h100-shared")
