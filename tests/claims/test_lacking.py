"""The form follows what the cluster can do: what its API server would drop in silence is refused, with the reason."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape

import pytest
from django.test import Client

from gpuinventory.capabilities import Capabilities, Gate
from tests.claims.rows import KEY, QUERY
from tests.gpuinventory.fleet import keep

pytestmark = pytest.mark.usefixtures("fleet")
DISTINCT = "&count=2&constraint.1.kind=distinctAttribute&constraint.1.attribute=gpu.portico.dev/uuid"
TOLERATES = "&toleration.1.key=k&toleration.1.operator=Exists"
EXTENDED = "&style=extended&class=h100-shared"
EVIDENCE = "it drops that field"


def lacks(*names: str) -> None:
    """The last look at the cluster found these gates off."""
    gates = tuple(Gate(name=name, state="off", evidence=EVIDENCE) for name in names)
    seen = Capabilities(version="v1.34.1", minor=34, served={"v1": ()}, gates=gates, checked_at=datetime.now(UTC))
    keep(seen)


def page(client: Client, more: str = "", status: int = 200) -> str:
    answer = client.get(f"/request/?{QUERY}{more}&form={KEY}")
    assert answer.status_code == status
    return re.sub(r"\s+", " ", unescape(re.sub(r"<(?!input|/?details)[^>]+>", " ", answer.content.decode())))


@pytest.mark.parametrize(
    ("gate", "more", "offer"),
    [
        ("DRAPrioritizedList", "&alt.1.class=h100-shared", "alternatives within one request (firstAvailable)"),
        ("DRAConsumableCapacity", "&share=50", "shares of a device"),
        ("DRAConsumableCapacity", DISTINCT, "shares of a device"),
        ("DRADeviceTaints", TOLERATES, "device taints, nor tolerations of them"),
        ("DRAExtendedResource", EXTENDED, "extended resources that are served by device classes"),
    ],
)  # fmt: skip
def test_what_the_api_server_would_drop_is_refused(as_alice: Client, gate: str, more: str, offer: str) -> None:
    assert "This cluster can't do that." not in page(as_alice, more)
    lacks(gate)
    told = page(as_alice, more, 422)
    assert "This cluster can't do that." in told
    assert f"This cluster has no {offer}: the API server has feature gate {gate} off ({EVIDENCE})." in told


def test_what_is_whole_needs_none_of_it(as_alice: Client) -> None:
    lacks("DRAPrioritizedList", "DRAConsumableCapacity", "DRADeviceTaints", "DRAExtendedResource")
    assert "This cluster can't do that." not in page(as_alice)


def test_a_style_and_alternatives_that_the_cluster_lacks_are_closed_with_the_reason(as_alice: Client) -> None:
    style = re.compile(r'<input type="radio" name="style" value="extended"( disabled[^>]*)?>')
    before = page(as_alice)
    assert style.search(before)[1] is None  # type: ignore[index]
    lacks("DRAExtendedResource", "DRAPrioritizedList")
    closed = page(as_alice)
    assert style.search(closed)[1]  # type: ignore[index]
    assert "This cluster has no extended resources that are served by device classes" in closed
    assert "This cluster has no alternatives within one request" in closed
    assert 'name="alt.1.class"' not in as_alice.get(f"/request/?{QUERY}&form={KEY}").content.decode()


def test_shares_and_tolerations_that_the_cluster_lacks_are_closed_with_the_reason(as_alice: Client) -> None:
    lacks("DRAConsumableCapacity", "DRADeviceTaints")
    closed = page(as_alice)
    share = re.compile(r'<input type="radio" name="mode" value="share"( disabled[^>]*)?>')
    assert share.search(closed)[1]  # type: ignore[index]
    assert "This cluster has no shares of a device" in closed
    assert "This cluster has no device taints, nor tolerations of them" in closed
    assert 'name="toleration.1.key"' not in as_alice.get(f"/request/?{QUERY}&form={KEY}").content.decode()


def test_a_cluster_that_was_looked_at_again_opens_them(as_alice: Client) -> None:
    lacks("DRAPrioritizedList")
    assert "This cluster has no alternatives" in page(as_alice)
    seen = Capabilities(version="v1.37.2", minor=37, served={"v1": ()}, checked_at=datetime.now(UTC))
    keep(seen)
    assert "This cluster has no alternatives" not in page(as_alice)
