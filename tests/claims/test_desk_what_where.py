"""Each pod its own or all share one, and a name that is taken."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qs

import pytest
from django.test import Client

from tests.claims.desk import form_page, words
from tests.claims.rows import put, template
from tests.gpuinventory.fleet import claim

pytestmark = pytest.mark.usefixtures("fleet")
OTHER = "0123456789abcdef"


def offered(html: str) -> dict[str, str]:
    """What the link with the free name asks for."""
    (query,) = re.findall(r'<a href="/request/\?([^"]+)">Take [^<]+</a>', html)
    return {key: values[-1] for key, values in parse_qs(unescape(query)).items()}


def test_pods_get_their_own_claims_or_share_one(as_alice: Client) -> None:
    own, shared = form_page(as_alice), form_page(as_alice, "&claim=shared")
    assert re.search(r'name="claim" value="own" checked', own)
    assert re.search(r'name="claim" value="shared" checked', shared)
    assert "up to 256 pods of this namespace use the same devices" in words(own)
    assert "All pods share 1 whole device of physical-gpu" in words(shared)


def test_a_wrong_word_for_it_is_refused_at_its_field(as_alice: Client) -> None:
    html = form_page(as_alice, "&claim=both", status=422)
    assert 'href="#field-claim"' in html
    assert 'id="error-claim"' in html


def test_a_taken_name_is_offered_with_the_first_free_number(as_alice: Client) -> None:
    put("ResourceClaimTemplate", template("ml-team", "trainer", OTHER), template("ml-team", "trainer-2", OTHER))
    put("ResourceClaim", claim("ml-team", "trainer-3"))
    put("ResourceClaimTemplate", template("inference-team", "trainer-4", OTHER))
    html = form_page(as_alice, "&memory=40Gi")
    assert "ml-team has a template of this name already" in words(html)
    found = offered(html)
    assert (found["name"], found["memory"], found["ns"]) == ("trainer-4", "40Gi", "ml-team")


def test_the_longest_name_is_cut_for_its_number(as_alice: Client) -> None:
    name = "a" * 61 + "-b"
    put("ResourceClaimTemplate", template("ml-team", name, OTHER))
    assert offered(form_page(as_alice, f"&name={name}"))["name"] == "a" * 61 + "-2"


def test_a_name_of_its_own_object_is_not_taken(as_alice: Client) -> None:
    put("ResourceClaimTemplate", template("ml-team", "trainer"))
    assert ">Take " not in form_page(as_alice)
