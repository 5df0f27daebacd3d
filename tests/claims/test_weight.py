"""What the request form weighs over the wire, with everything that it loads: first, and after each change."""

from __future__ import annotations

import gzip

import pytest
from django.test import Client

from benchmarks.weight import weight_of
from tests.claims.rows import KEY, QUERY

FIRST, AFTER = 120_000, 15_000
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}
GZIP = {"Accept-Encoding": "gzip"}


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("memory", ["", "&memory=20Gi", "&memory=900Gi", "&count=5"])
def test_the_form_is_light(as_alice: Client, memory: str) -> None:
    address = f"/request/?{QUERY}&form={KEY}{memory}"
    first = as_alice.get(address, headers=GZIP)
    assert first["Content-Encoding"] == "gzip"
    weight = weight_of(gzip.decompress(first.content), len(first.content))
    assert "/static/js/htmx.min.js" in weight.loads
    assert weight.total < FIRST
    assert len(as_alice.get(address, headers=GZIP | PART).content) < AFTER
