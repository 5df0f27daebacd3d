"""Any text under any key of the form's lists, plans and configuration: the page answers, and never fails."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claims.wish import LISTS
from gpuinventory.services.ingest import forget_others
from tests.claims.rows import CEL, KEY, QUERY, device_class, put

pytestmark = pytest.mark.usefixtures("fleet")
USUAL = parse_qsl(QUERY)
KEYS = sorted(
    f"{name}.{number}{'.' if part else ''}{part}"
    for name, (parts, _) in LISTS.items()
    for part in parts
    for number in (0, 1, 2, 8, 17, 99)
)
PLAIN = ("priority", "hours", "until", "interval", "strategy", "style", "claim", "mode", "profile", "slots", "memory")
LIKELY = st.sampled_from(
    (
        *("physical-gpu", "slices", "anything", "nothing", "whole", "slice", "share", "timesliced", "1g.10gb", "40Gi"),
        *("true", "1", "0", "-1", "5", "50", "100", "99999999999999999999", "2027-01-31", "2020-01-01", "0000-00-00"),
        *("matchAttribute", "distinctAttribute", "resource.kubernetes.io/pcieRoot", "gpu.portico.dev/productName"),
        *("Exists", "Equal", "NoSchedule", "NoExecute", "MPS", "Short", "extended", "shared", "device.driver", "a/b"),
        *('device.attributes["gpu.portico.dev"].nothing == "x"', 'device.driver == "gpu.portico.dev"', "[1].map(x, x)"),
        *(
            'device.attributes["gpu.portico.dev"].uuid == "GPU-1"',
            'device.capacity["a"].b.compareTo(quantity("1")) > 0',
        ),
    )
)
TEXTS = LIKELY | st.text(max_size=60)
QUERIES = st.lists(st.tuples(st.sampled_from((*KEYS, *PLAIN)), TEXTS), max_size=10)


@pytest.fixture(autouse=True)
def _slices(fleet: None) -> Iterator[None]:
    put("DeviceClass", device_class("slices", CEL.replace("Physical", "MIG")))
    yield
    forget_others("DeviceClass", set())


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(pairs=QUERIES)
def test_the_page_answers_whatever_is_asked(as_alice: Client, pairs: list[tuple[str, str]]) -> None:
    query = urlencode([*USUAL, *pairs, ("form", KEY)], errors="surrogatepass")
    answer = as_alice.get(f"/request/?{query}")
    assert answer.status_code in (200, 422)
    assert answer.content.count(b'id="wish"') == 1


@pytest.mark.parametrize("key", ["cel.1", "alt.1.class", "constraint.1.attribute", "toleration.1.key", "until"])
@pytest.mark.parametrize(
    "text", ["\x00", "%", "\ud83d", "<script>alert(1)</script>", "' OR 1=1 --", "{{ 7 }}", "٣", "x" * 9_000]
)
def test_what_is_no_value_is_refused_in_words(as_alice: Client, key: str, text: str) -> None:
    query = urlencode([*USUAL, (key, text), ("form", KEY)], errors="surrogatepass")
    answer = as_alice.get(f"/request/?{query}")
    assert answer.status_code == 422
    assert b"<script>alert" not in answer.content
    assert f'id="error-{key}"'.encode() in answer.content
