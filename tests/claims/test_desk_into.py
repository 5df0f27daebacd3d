"""The part "Into what" of the form: workloads, replicas, styles with their reasons, presets, and one's own manifest."""

from __future__ import annotations

from hashlib import sha256
from html import unescape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claims.models import PastedManifest
from claims.services.paste import KEPT, paste
from portal.models import User
from tests.claims.pages import code_of
from tests.claims.rows import KEY, QUERY

pytestmark = pytest.mark.usefixtures("fleet")
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: mine}\nspec: {containers: [{name: main, image: x}]}\n"
OWN = f"{QUERY}&workload=own&form={KEY}"


def page(client: Client, query: str, status: int = 200) -> str:
    answer = client.get(f"/request/?{query}")
    assert answer.status_code == status
    return unescape(answer.content.decode())


def pasted(client: Client, text: str, **more: str) -> Any:
    return client.post("/request/paste", dict(parse_qsl(OWN)) | {"text": text} | more)


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("values", "tab", "words"),
    [
        ("workload=pod", "text-pod", "kind: Pod"),
        ("workload=deployment&replicas=3", "text-deployment", "replicas: 3"),
        ("workload=job&replicas=2", "text-job", "parallelism: 2"),
        ("workload=statefulset", "text-statefulset", "serviceName: trainer"),
        ("workload=deployment&scale.min=2&scale.max=5", "text-autoscaler", "maxReplicas: 5"),
    ],
)
def test_each_workload_has_its_file(as_alice: Client, values: str, tab: str, words: str) -> None:
    html = page(as_alice, f"{QUERY}&form={KEY}&{values}")
    assert words in code_of(html)[tab]


@pytest.mark.parametrize(("workload", "fields"), [
    ("pod", set()), ("job", {"replicas"}), ("statefulset", {"replicas"}),
    ("deployment", {"replicas", "scale.min", "scale.max"}),
])  # fmt: skip
def test_only_what_the_workload_reads_is_asked(as_alice: Client, workload: str, fields: set[str]) -> None:
    html = page(as_alice, f"{QUERY}&form={KEY}&workload={workload}")
    assert {name for name in ("replicas", "scale.min", "scale.max") if f'name="{name}"' in html} == fields


@pytest.mark.parametrize(
    ("values", "key", "said"),
    [
        ("workload=deployment&replicas=0", "replicas", "Replicas: “0” is out of bounds."),
        ("workload=deployment&scale.min=9&scale.max=2", "scale.min", "9 to 2 replicas can't be."),
        ("workload=cronjob", "workload", "“cronjob” can't be chosen."),
        ("style=both", "style", "“both” can't be chosen."),
        ("preset=ollama", "preset", "“ollama” can't be chosen."),
        ("workload=deployment&claim=shared&replicas=257", "replicas", "whole number from 1 to 256"),
    ],
)
def test_a_wrong_value_is_said_at_its_field(as_alice: Client, values: str, key: str, said: str) -> None:
    html = page(as_alice, f"{QUERY}&form={KEY}&{values}", 422)
    assert said in html
    assert f'href="#field-{key}"' in html
    assert f'id="field-{key}"' in html
    assert f'id="error-{key}"' in html


def test_what_an_extended_resource_can_not_say_closes_that_style(as_alice: Client) -> None:
    html = page(as_alice, f"{QUERY}&share=25&memory=10Gi&cel.1=true&form={KEY}")
    assert 'value="extended" disabled' in html
    assert "It can't say: How much of a device, Memory, Selectors." in html
    assert 'value="extended" disabled' not in page(as_alice, f"{QUERY}&form={KEY}")


def test_a_style_that_is_chosen_stays_open_and_the_fields_say_what_is_wrong(as_alice: Client) -> None:
    html = page(as_alice, f"{QUERY}&memory=10Gi&style=extended&form={KEY}", 422)
    assert 'value="extended" checked>' in html
    assert "Memory can't be said by an extended resource." in html


def test_a_preset_says_what_it_adds(as_alice: Client) -> None:
    assert "Port 8888, a volume for /home/jovyan" in page(as_alice, f"{QUERY}&preset=notebook&form={KEY}")


def test_a_manifest_that_is_still_to_come_is_no_mistake(as_alice: Client) -> None:
    html = page(as_alice, OWN)
    assert "Still to come: Manifest" in html
    assert 'id="field-manifest"' in html
    assert "aria-invalid" not in html


def test_a_pasted_manifest_comes_back_with_the_devices_and_its_address_names_it(as_alice: Client) -> None:
    answer = pasted(as_alice, POD.replace("\n", "\r\n"), count="2")
    assert answer.status_code == 303
    query = urlsplit(answer["Location"]).query
    assert parse_qs(query)["manifest"] == [digest_of(POD)]
    assert parse_qs(query)["count"] == ["2"]
    html = page(as_alice, query)
    assert "resourceClaimTemplateName: trainer" in code_of(html)["text-workload"]
    assert "name: mine" in code_of(html)["text-workload"]
    assert f">\n{POD}</textarea>" in html


def test_a_link_shows_the_manifest_to_the_same_team_and_to_nobody_else(
    as_alice: Client, as_bob: Client, as_charlie: Client
) -> None:
    query = urlsplit(pasted(as_alice, POD)["Location"]).query
    assert "name: mine" in page(as_bob, query)
    strange = page(as_charlie, query.replace("ns=ml-team", "ns=inference-team"), 422)
    assert "name: mine" not in strange
    assert "The manifest of this link is not here." in strange


def test_the_newest_of_each_person_are_kept(alice: User, bob: User) -> None:
    paste(bob, POD)
    digests = [paste(alice, f"{POD}# {number}\n") for number in range(KEPT + 2)]
    paste(alice, f"{POD}# 2\n")
    kept = set(PastedManifest.objects.filter(user=alice).values_list("digest", flat=True))
    assert kept == set(digests[2:])
    assert PastedManifest.objects.filter(user=bob).count() == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x" * 1_000_001, "The manifest has 1000001 bytes. At most 1000000 are read."),
        ("é" * 500_001, "The manifest has 1000002 bytes."),
        ("a: 1\nb: \0\n", "Line 2: a null character can't be read."),
    ],
)
def test_what_can_not_be_kept_is_422_and_comes_back(as_alice: Client, text: str, words: str) -> None:
    answer = pasted(as_alice, text)
    html = unescape(answer.content.decode())
    assert answer.status_code == 422
    assert words in html
    assert text in html
    assert not PastedManifest.objects.exists()


@pytest.mark.parametrize(
    "values", [{"text": "x" * 3_000_000}, {f"x{number}": "" for number in range(1001)}], ids=["bytes", "fields"]
)
def test_what_is_more_than_any_form_is_413_in_words(as_alice: Client, values: dict[str, str]) -> None:
    answer = as_alice.post("/request/paste", values)
    assert answer.status_code == 413
    assert "It is larger than any form of this portal" in answer.content.decode()
    assert not PastedManifest.objects.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is no mapping of keys to values"),
        (f"{POD}---\n{POD}", "A second one begins at line 5."),
        ("a: &a [x,x]\nb: [*a,*a]\n", "The manifest uses an anchor or alias."),
        ("a: " + "[" * 65 + "]" * 65, "it goes past 64 levels or 20000 values"),
        (POD.replace("Pod", "ConfigMap"), "“ConfigMap” is no workload that can be changed here."),
        (POD.replace("mine", "задача"), "The manifest lacks metadata.name."),
        (POD.replace("{name: mine}", "{name: mine, namespace: other}"), "belongs to the namespace “other”"),
        ("кластер: [", "The manifest can't be read. Line 2:"),
    ],
)
def test_what_can_not_be_used_is_kept_and_said_at_the_field(as_alice: Client, text: str, words: str) -> None:
    html = page(as_alice, urlsplit(pasted(as_alice, text)["Location"]).query, 422)
    assert words in html
    assert 'href="#field-manifest"' in html
    assert f">\n{text}</textarea>" in html


def test_a_text_of_another_alphabet_stays_what_it_is(as_alice: Client) -> None:
    text = POD.replace("{name: mine}", "{name: mine, annotations: {владелец: 数据团队}}")
    html = page(as_alice, urlsplit(pasted(as_alice, text)["Location"]).query)
    assert 'владелец": "数据团队"' in code_of(html)["text-workload"].replace("владелец:", 'владелец":')


def test_a_manifest_of_nearly_a_megabyte_is_shown_as_it_will_be(as_alice: Client) -> None:
    notes = "".join(f"    k{number}: {'x' * 100}\n" for number in range(8500))
    text = POD.replace("{name: mine}", f"\n  name: mine\n  annotations:\n{notes}")
    query = urlsplit(pasted(as_alice, text)["Location"]).query
    shown = code_of(as_alice.get(f"/request/?{query}").content.decode())["text-workload"]
    assert shown.encode() == as_alice.get(f"/request/workload.yaml?{query}").content
    assert shown.count("\n") > 8500


@pytest.mark.parametrize("manifest", ["x", "0" * 64, "../../etc/passwd", "Ж" * 64])
def test_an_address_that_names_none_is_answered_in_words(as_alice: Client, manifest: str) -> None:
    answer = as_alice.get("/request/", dict(parse_qsl(OWN)) | {"manifest": manifest})
    assert answer.status_code in (200, 422)
    assert "anifest" in answer.content.decode()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200) | st.text(st.sampled_from("a:-[]{}&*!|>'\"\n #0.e%,?"), max_size=60))
def test_no_text_makes_the_form_fall_over(as_alice: Client, text: str) -> None:
    answer = pasted(as_alice, text)
    if answer.status_code == 303:
        answer = as_alice.get(answer["Location"])
    assert answer.status_code == 422


VALUE = st.text(max_size=12) | st.sampled_from(
    ["pod", "deployment", "own", "extended", "claims", "nim", "shared", "0", "9"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.dictionaries(
        st.sampled_from(["workload", "replicas", "scale.min", "scale.max", "style", "preset", "claim", "manifest"]),
        VALUE,
    )
)
def test_no_value_makes_the_form_or_its_files_fall_over(as_alice: Client, values: dict[str, str]) -> None:
    query = dict(parse_qsl(QUERY)) | {"form": KEY} | values
    assert as_alice.get("/request/", query).status_code in (200, 422)
    assert as_alice.get("/request/bundle.zip", query).status_code in (200, 422)


def test_only_members_paste(as_gus: Client, anonymous: Client) -> None:
    assert pasted(as_gus, POD).status_code == 403
    assert pasted(anonymous, POD).status_code == 302
    assert anonymous.get("/request/paste").status_code == 405
    assert urlencode({"form": KEY}) in OWN
