"""Validate as far as that needs no cluster: what is no wish, and a cluster that is away.

What a real API server says is in tests/cluster/test_claims_validate.py.
"""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import Client
from django.utils import timezone

from claims.models import GpuRequest, GpuRequestEvent
from gpuinventory.models import StreamCursor
from tests.claims.pages import create_form
from tests.claims.rows import CLASS, KEY, QUERY

pytestmark = pytest.mark.usefixtures("fleet", "away")
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


def validate(client: Client, **changes: str) -> Any:
    return client.post("/request/validate", dict(parse_qsl(QUERY)) | {"form": KEY} | changes)


def said(answer: Any) -> str:
    return unescape(answer.content.decode())


def test_a_cluster_that_is_away_is_503_in_the_panel_and_the_form_stays(as_alice: Client, away: str) -> None:
    answer = validate(as_alice, count="2")
    assert answer.status_code == 503
    text = said(answer).split('id="validation"')[1]
    assert "It could not be validated." in text
    assert f"no answer from {away}" in text
    assert create_form(answer.content.decode())["count"] == "2"


@pytest.mark.parametrize(
    ("style", "reason"),
    [("", "nothing can be created or validated now"), ("extended", "nothing can be validated now")],
)
def test_while_the_cluster_is_silent_the_button_is_off_and_says_why(as_alice: Client, style: str, reason: str) -> None:
    address = f"/request/?{QUERY.replace(CLASS, 'h100-shared')}&form={KEY}" + (f"&style={style}" if style else "")
    button = re.compile(r'id="validate-button" disabled aria-describedby="away-why"')
    assert not button.search(said(as_alice.get(address)))

    StreamCursor.objects.update(synced_at=timezone.now() - timedelta(minutes=9), last_error="no answer: refused")
    page = said(as_alice.get(address))
    assert button.search(page)
    assert reason in page.split('id="away-why"')[1].split("</span>")[0]


def test_htmx_gets_the_part_with_the_same_words(as_alice: Client) -> None:
    answer = as_alice.post("/request/validate", dict(parse_qsl(QUERY)) | {"form": KEY}, headers=HTMX)
    assert "<html" not in said(answer)
    assert "It could not be validated." in said(answer)


def test_what_is_no_wish_is_422_at_its_field(as_alice: Client) -> None:
    answer = validate(as_alice, count="33")
    assert answer.status_code == 422
    assert 'id="error-count"' in said(answer)
    assert validate(as_alice, form="x").status_code == 422


def test_nothing_is_written(as_alice: Client) -> None:
    validate(as_alice)
    assert not GpuRequest.objects.exists()
    assert not GpuRequestEvent.objects.exists()


def test_guests_validate_nothing(as_gus: Client, as_olga: Client) -> None:
    for client in (as_gus, as_olga):
        assert validate(client).status_code == 403


def test_a_post_from_elsewhere_is_refused(as_alice: Client) -> None:
    as_alice.handler.enforce_csrf_checks = True
    assert validate(as_alice).status_code == 403
    assert as_alice.get("/request/validate").status_code == 405
