"""The request form: a pure function of its address, its preview and its downloads."""

from __future__ import annotations

from hashlib import sha256
from html import unescape
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from portal.models import Team, TeamNamespace
from tests.claims.pages import code_of, create_form
from tests.claims.rows import KEY, QUERY, put, template
from tests.gpuinventory.fleet import claim

ADDRESS = f"/request/?{QUERY}&form={KEY}"
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}
pytestmark = pytest.mark.usefixtures("fleet")


def page(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def test_the_form_shows_the_wish_and_its_files(as_alice: Client) -> None:
    html = page(as_alice, ADDRESS)
    assert "Each pod gets 1 whole device of physical-gpu" in html
    assert 'value="trainer"' in html
    names = ("template", "pod", "kustomization", "readme", "quota")
    assert set(code_of(html)) == {*(f"text-{name}" for name in names), "command", "permalink"}


@pytest.mark.parametrize("slot", ["template", "pod", "quota"])
def test_a_download_is_what_the_page_shows_byte_for_byte(as_alice: Client, slot: str) -> None:
    shown = code_of(page(as_alice, ADDRESS))[f"text-{slot}"]
    answer = as_alice.get(f"/request/{slot}.yaml?{QUERY}&form={KEY}")
    assert answer.content == shown.encode()
    assert answer["Content-Type"] == "application/yaml"
    assert answer["Content-Disposition"] == f'attachment; filename="trainer-{slot}.yaml"'


def test_the_same_address_gives_the_same_files_to_a_colleague(as_alice: Client, as_bob: Client) -> None:
    assert code_of(page(as_alice, ADDRESS)) == code_of(page(as_bob, ADDRESS))


def test_a_form_without_a_number_gets_one_and_keeps_everything_else(as_alice: Client) -> None:
    answer = as_alice.get("/request/?class=physical-gpu&theme=mine")
    assert answer.status_code == 302
    query = parse_qs(urlsplit(answer["Location"]).query)
    (key,) = query.pop("form")
    assert len(key) == 16
    assert query.pop("name") == ["physical-gpu-job"]
    assert query == {"class": ["physical-gpu"], "theme": ["mine"], "ns": ["ml-team"]}


@pytest.mark.parametrize("key", ["", "short", "With-Capitals", "a" * 41, "../../../etc"])
def test_a_number_that_is_none_is_replaced(as_alice: Client, key: str) -> None:
    answer = as_alice.get("/request/", {"form": key, "ns": "ml-team"})
    assert answer.status_code == 302
    assert parse_qs(urlsplit(answer["Location"]).query)["form"] != [key]


def test_keys_that_are_not_ours_are_kept_by_the_form(as_alice: Client) -> None:
    assert '<input type="hidden" name="theme" value="mine">' in page(as_alice, f"{ADDRESS}&theme=mine")


def test_create_sends_the_wish_that_is_shown_its_number_and_its_digest(as_alice: Client) -> None:
    html = page(as_alice, f"{ADDRESS}&theme=mine")
    sent = create_form(html)
    text = code_of(html)["text-template"]
    assert sent.pop("digest") == sha256(text.encode()).hexdigest()
    assert sent.pop("shown") == text
    assert len(sent.pop("csrfmiddlewaretoken")) == 64
    assert sent == dict(parse_qsl(QUERY)) | {"form": KEY, "theme": "mine"}


def test_what_a_pod_asks_by_itself_is_not_created_from_here(as_alice: Client) -> None:
    html = page(as_alice, f"{ADDRESS}&style=extended")
    assert "the pod itself names the extended resource" in html
    assert create_form(html) == {}


def test_a_claim_that_pods_share_is_created_as_a_template_is(as_alice: Client) -> None:
    html = page(as_alice, f"{ADDRESS}&claim=shared")
    assert "All pods share 1 whole device of physical-gpu" in html
    assert "Creates exactly the claim below in ml-team" in html
    assert create_form(html)["shown"] == code_of(html)["text-claim"]
    put("ResourceClaim", claim("ml-team", "trainer"))
    assert "has a claim of this name already" in page(as_alice, f"{ADDRESS}&claim=shared")
    assert "of this name already" not in page(as_alice, ADDRESS)


@pytest.mark.parametrize("cel", ["1", "device.", "device.nothing", "x" * 11_000])
def test_a_selector_that_is_wrong_never_fails_the_page(as_alice: Client, cel: str) -> None:
    assert as_alice.get("/request/", dict(parse_qsl(QUERY)) | {"form": KEY, "cel.1": cel}).status_code in (200, 422)


def test_what_still_lacks_is_said_and_is_no_mistake(as_alice: Client) -> None:
    html = page(as_alice, f"/request/?ns=ml-team&form={KEY}")
    assert "Still to come: Name, GPU class" in html
    assert "aria-invalid" not in html
    assert "Create the template" not in html


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("count", "33", "One resource claim takes 1 to 32 devices"),
        ("share", "33", "A share is 5 to 100 percent of a device, in steps of 5"),
        ("memory", "lots", "“lots” is no amount of memory"),
        ("name", "My GPU", "a-z, 0-9 and -"),
        ("class", "h200", "The cluster has no GPU class of that name"),
        ("ns", "inference-team", "None of your teams works in a namespace of that name"),
        ("strategy", "Luck", "The node driver knows MPS"),
    ],
)
def test_a_wrong_value_is_422_with_its_bounds_at_the_field(as_alice: Client, key: str, value: str, said: str) -> None:
    query = {name: values[0] for name, values in parse_qs(QUERY).items()} | {key: value, "form": KEY}
    html = unescape(page(as_alice, f"/request/?{urlencode(query)}", 422))
    assert said in html
    assert f'href="#field-{key}"' in html
    assert f'id="error-{key}"' in html
    assert "Create the template" not in html


def test_what_is_not_there_is_told_beside_what_can_not_be_read(as_alice: Client) -> None:
    answer = as_alice.get(f"/request/?ns=nowhere&name=BAD_&class=nix&count=99&form={KEY}")
    assert answer.status_code == 422
    for field in ("ns", "name", "class", "count"):
        assert f'href="#field-{field}"' in answer.content.decode()


def test_a_share_of_several_devices_is_refused_with_the_reason(as_alice: Client) -> None:
    html = unescape(page(as_alice, f"/request/?{QUERY}&count=2&share=50&form={KEY}", 422))
    assert "A process talks to one MPS daemon only" in html


def test_memory_past_the_share_is_refused_and_the_share_that_covers_it_said(as_alice: Client) -> None:
    html = unescape(page(as_alice, f"/request/?{QUERY}&share=25&memory=30Gi&form={KEY}", 422))
    assert "more than 79.6 GiB, and 25 % of that are 19.9 GiB" in html
    assert "Ask for a share of 40 %" in html


def test_a_whole_device_too_small_is_warned_of_and_allowed(as_alice: Client) -> None:
    html = page(as_alice, f"/request/?{QUERY}&memory=100Gi&form={KEY}")
    assert "the largest has 79.6 GiB" in html
    assert "Create the template" in html


def test_a_name_that_is_taken_is_said_before_the_cluster_refuses_it(as_alice: Client) -> None:
    put("ResourceClaimTemplate", template("ml-team", "trainer", key="0123456789abcdef"))
    assert "has a template of this name already" in page(as_alice, ADDRESS)
    assert "has a template of this name already" not in page(as_alice, ADDRESS.replace("trainer", "other"))


def test_a_form_that_was_used_says_so(as_alice: Client) -> None:
    put("ResourceClaimTemplate", template("ml-team", "trainer"))
    assert "This form has created its template already" in page(as_alice, ADDRESS)


def test_htmx_gets_the_part_that_changes(as_alice: Client) -> None:
    answer = as_alice.get(ADDRESS, headers=HTMX)
    html = answer.content.decode()
    assert "<html" not in html
    assert 'id="wish"' in html
    assert "HX-Request" in answer["Vary"]


def test_what_a_person_writes_is_escaped(as_alice: Client) -> None:
    html = page(as_alice, f"/request/?{urlencode({'name': '<script>x</script>', 'ns': 'ml-team', 'form': KEY})}", 422)
    assert "<script>x" not in html


def test_a_download_of_no_wish_says_why(as_alice: Client) -> None:
    answer = as_alice.get(f"/request/template.yaml?{QUERY}&count=0&form={KEY}")
    assert answer.status_code == 422
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert "1 to 32" in answer.content.decode()
    assert as_alice.get(f"/request/template.yaml?{QUERY}").status_code == 422


def test_only_own_namespaces_are_offered(as_charlie: Client, ml_team: Team) -> None:
    TeamNamespace.objects.create(team=ml_team, namespace="ml-secret")
    html = page(as_charlie, f"/request/?form={KEY}")
    assert "ml-secret" not in html
    assert "inference-team" in html


def test_an_empty_cluster_is_said(as_alice: Client) -> None:
    from gpuinventory.services.ingest import forget_others  # noqa: PLC0415 - only here

    forget_others("DeviceClass", set())
    assert "No DeviceClass was read from the cluster yet" in page(as_alice, f"/request/?form={KEY}&ns=ml-team")


def test_a_guest_reads_how_to_get_access(as_gus: Client, as_olga: Client) -> None:
    for client in (as_gus, as_olga):
        html = page(client, ADDRESS)
        assert "Ask the lead of your team to add you under this name" in html
        assert 'id="wish"' not in html


def test_nobody_signed_in_is_sent_to_sign_in_and_back(anonymous: Client) -> None:
    answer = anonymous.get(ADDRESS)
    assert answer.status_code == 302
    assert parse_qs(urlsplit(answer["Location"]).query)["next"] == [ADDRESS]


def test_the_page_asks_the_database_a_fixed_number_of_times(
    as_alice: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """One per kind of object after a change of the cluster, none of them while nothing changes."""
    with django_assert_max_num_queries(20):
        as_alice.get(ADDRESS)
    with django_assert_max_num_queries(15):
        as_alice.get(ADDRESS)
