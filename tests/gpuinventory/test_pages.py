"""Home and the device pages: who sees what, page and part, and the answer to a poll that finds nothing new."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from gpuinventory.kinds import KINDS
from gpuinventory.selectors import revision
from gpuinventory.services import lease
from gpuinventory.services.ingest import ingest
from tests.gpuinventory.fleet import DRIVER, claim, device, seen, slices_of

pytestmark = pytest.mark.django_db
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}
CARD = f"/devices/{DRIVER}/node-a/gpu-0/"


@pytest.fixture
def fleet(db: None) -> None:
    """A card shared by two teams, and a free one."""
    ingest("ResourceSlice", seen(slices_of("node-a", cards=2)))
    ingest(
        "ResourceClaim",
        seen(
            [
                claim("ml-team", "notebook", [device("node-a", "gpu-0", percent=25)], pods=["notebook-0"]),
                claim("inference-team", "embedder", [device("node-a", "gpu-0", percent=50)], pods=["embedder-0"]),
            ]
        ),
    )


def text(client: Client, address: str, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.usefixtures("fleet")
def test_an_operator_sees_holders_shares_and_free_cards(as_olga: Client) -> None:
    page = text(as_olga, "/devices/")
    for word in ("notebook", "embedder", "ml-team", "inference-team", "25&nbsp;%", "50&nbsp;%", "gpu-1", "Partly held"):
        assert word in page


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("address", ["/", "/devices/", CARD])
def test_a_team_never_reads_another_team_s_names(as_alice: Client, address: str) -> None:
    page = text(as_alice, address)
    assert "notebook" in page
    assert "embedder" not in page
    assert "inference-team" not in page


@pytest.mark.usefixtures("fleet")
def test_a_guest_sees_numbers_and_how_to_get_access(as_gus: Client) -> None:
    page = text(as_gus, "/")
    assert "How to get access" in page
    assert "<strong>1</strong> of 2 free" in page
    assert "notebook" not in page


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("address", ["/", "/devices/", CARD])
def test_page_and_part_are_one_view(as_alice: Client, address: str) -> None:
    page, part = text(as_alice, address), text(as_alice, address, **PART)
    assert page.startswith("<!doctype html>")
    assert part.lstrip().startswith('<div id="live"')
    assert " ".join(part.split()) in " ".join(page.split())
    assert {"HX-Request", "HX-Request-Type"} <= set(as_alice.get(address)["Vary"].split(", "))


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("address", ["/", "/devices/", CARD])
def test_a_poll_gets_nothing_until_something_changed(as_alice: Client, address: str) -> None:
    shown = f"{address}?since={revision()}"
    assert as_alice.get(shown, headers=PART).status_code == 204
    assert as_alice.get(shown).status_code == 200  # a person who opens the address gets the page
    ingest("ResourceClaim", seen([claim("ml-team", "another")]))
    assert as_alice.get(shown, headers=PART).status_code == 200


def test_a_poll_that_finds_nothing_new_is_cheap(
    as_alice: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """Session, user, revision."""
    with django_assert_max_num_queries(3):
        assert as_alice.get("/devices/?since=0", headers=PART).status_code == 204


def test_pages_without_anything(as_olga: Client, as_alice: Client) -> None:
    assert "No driver has published a ResourceSlice." in text(as_olga, "/devices/")
    assert "Your namespaces hold no device" in text(as_alice, "/devices/")


def test_the_first_visit_offers_where_to_begin(as_alice: Client, as_gus: Client) -> None:
    page = text(as_alice, "/")
    for address in ("/request/", "/request/?workload=own", "/capacity/"):
        assert f'<a class="choice" href="{address}">' in page
    assert 'class="choice"' not in text(as_gus, "/")
    ingest("ResourceClaim", seen([claim("ml-team", "notebook", [device("node-a", "gpu-0")], pods=["p"])]))
    assert 'class="choice"' not in text(as_alice, "/")


def test_pages_tell_how_far_the_first_reading_is(as_alice: Client) -> None:
    page = text(as_alice, "/")
    assert "Reading the cluster: 0 of 13 kinds so far. Pages fill when a worker reaches it." in page
    assert 'hx-trigger="every 1s"' in page
    now = datetime.now(UTC)
    for kind in KINDS[:4]:
        lease.take(kind, "holder", now)
        lease.keep(kind, "holder", now)
    part = text(as_alice, "/freshness/", **PART)
    assert "Reading the cluster: 4 of 13 kinds so far. Pages fill by themselves." in part
    for kind in KINDS[4:]:
        lease.take(kind, "holder", now)
        lease.keep(kind, "holder", now)
    part = text(as_alice, "/freshness/", **PART)
    assert "Reading the cluster" not in part
    assert 'hx-trigger="every 10s"' in part


@pytest.mark.usefixtures("fleet")
def test_filters_stand_in_the_address_and_stay_in_links(as_olga: Client) -> None:
    page = text(as_olga, "/devices/?state=free&show=all&page=1&text=gpu-1")
    assert '<option value="free" selected>' in page
    assert "state=free&amp;show=all&amp;text=gpu-1" in page
    assert "No device matches these filters" in text(as_olga, "/devices/?text=nothing-like-it")


@pytest.mark.parametrize("page", ["0", "-1", "x", "99999999999", "²"])
def test_odd_page_numbers_give_a_page(as_olga: Client, page: str) -> None:
    assert as_olga.get("/devices/", {"page": page}).status_code == 200


def test_a_pool_name_with_slashes_has_a_page(as_olga: Client) -> None:
    bodies = [body.replace(b'"name": "node-a"', b'"name": "gpus/node-a"') for body in slices_of("node-a")]
    ingest("ResourceSlice", seen(bodies))
    assert "gpus/node-a, generation 1" in text(as_olga, f"/devices/{DRIVER}/gpus/node-a/gpu-0/")


def test_the_words_of_objects_are_text_and_nothing_more(as_olga: Client) -> None:
    """A driver's texts go through escaping like everything else."""
    bodies = [body.replace(b"NVIDIA H100 80GB HBM3", b"<script>alert(1)</script>") for body in slices_of("node-a")]
    ingest("ResourceSlice", seen(bodies))
    page = text(as_olga, "/devices/")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page
