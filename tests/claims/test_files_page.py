"""Files by every way: the same bytes on the page, as a download, in the ZIP and all in one; and what is no file."""

from __future__ import annotations

from html import unescape
from io import BytesIO
from urllib.parse import urlencode, urlsplit
from zipfile import ZIP_STORED, ZipFile

import pytest
import yaml
from django.test import Client

from tests.claims.pages import code_of
from tests.claims.rows import KEY, QUERY

pytestmark = pytest.mark.usefixtures("fleet")
OWN = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"
    "spec: {template: {spec: {containers: [{name: b, image: c}]}}}\n"
)
# Every kind of file is in one of them.
WISHES = {
    "pod": ["template.yaml", "pod.yaml"],
    "pod&claim=shared": ["claim.yaml", "pod.yaml"],
    "pod&style=extended": ["pod.yaml"],
    "job&replicas=3&priority=high": ["template.yaml", "job.yaml"],
    "deployment&replicas=2": ["template.yaml", "deployment.yaml"],
    "deployment&scale.min=1&scale.max=4": ["template.yaml", "deployment.yaml", "autoscaler.yaml"],
    "statefulset&preset=notebook": ["template.yaml", "service.yaml", "statefulset.yaml"],
    "deployment&preset=nim": ["template.yaml", "volume.yaml", "service.yaml", "deployment.yaml"],
    "pod&preset=kubeflow&style=extended": ["pod.yaml"],
}


def query(more: str = "workload=pod") -> str:
    return f"{QUERY}&form={KEY}&{more}"


def bundle(client: Client, address: str) -> dict[str, bytes]:
    answer = client.get(f"/request/bundle.zip?{address}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"] == 'attachment; filename="trainer.zip"'
    with ZipFile(BytesIO(answer.content)) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {ZIP_STORED}
        return {name: archive.read(name) for name in archive.namelist()}


def assert_same_by_every_way(client: Client, address: str, applied: list[str]) -> None:
    shown = code_of(client.get(f"/request/?{address}").content.decode())
    files = bundle(client, address)
    assert list(files)[: len(applied)] == applied
    assert {"kustomization.yaml", "README.md", "quota.yaml"} <= set(files)
    for name, content in files.items():
        assert shown[f"text-{name.partition('.')[0].lower()}"].encode() == content
        answer = client.get(f"/request/{name}?{address}")
        assert answer.content == content
        assert answer["Content-Disposition"] == f'attachment; filename="trainer-{name}"'
    together = client.get(f"/request/manifest.yaml?{address}")
    assert together.content == b"---\n".join(files[name] for name in applied)
    assert together["Content-Disposition"] == 'attachment; filename="trainer.yaml"'
    assert len(list(yaml.safe_load_all(together.content))) == len(applied)


@pytest.mark.parametrize(("more", "applied"), WISHES.items())
def test_the_same_bytes_by_every_way(as_alice: Client, more: str, applied: list[str]) -> None:
    assert_same_by_every_way(as_alice, query(f"workload={more}"), applied)


def test_the_same_bytes_of_a_pasted_workload(as_alice: Client) -> None:
    values = dict(pair.split("=") for pair in query("workload=own").split("&"))
    address = urlsplit(as_alice.post("/request/paste", values | {"text": OWN})["Location"]).query
    assert_same_by_every_way(as_alice, address, ["template.yaml", "workload.yaml"])


def test_the_same_address_gives_the_same_archive_to_a_colleague_and_tomorrow(as_alice: Client, as_bob: Client) -> None:
    archives = {client.get(f"/request/bundle.zip?{query()}").content for client in (as_alice, as_bob, as_alice)}
    assert len(archives) == 1


@pytest.mark.parametrize("name", ["bundle.zip", "manifest.yaml", "template.yaml", "README.md"])
def test_head_tells_what_get_would_and_a_post_is_refused(as_alice: Client, name: str) -> None:
    answer = as_alice.head(f"/request/{name}?{query()}")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["Content-Disposition"] == as_alice.get(f"/request/{name}?{query()}")["Content-Disposition"]
    assert as_alice.post(f"/request/{name}?{query()}").status_code == 405


@pytest.mark.parametrize("name", ["bundle.zip", "manifest.yaml", "pod.yaml"])
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("count=0", "One resource claim takes 1 to 32 devices"),
        ("name=", "Name is missing."),
        ("name=%3Cscript%3E", "“<script>” can't be the name."),
        ("workload=own", "Manifest is missing."),
        ("form=x", "The form came without its number."),
        ("ns=inference-team", "You can't ask for GPUs in “inference-team”."),
    ],
)
def test_an_address_that_is_no_wish_is_422_in_plain_words(as_alice: Client, name: str, more: str, words: str) -> None:
    answer = as_alice.get(f"/request/{name}?{query(more)}")
    assert answer.status_code == 422
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert words in answer.content.decode()


@pytest.mark.parametrize("name", ["deployment.yaml", "claim.yaml", "secret.yaml", "template.yaml.bak", "..", "%2e%2e"])
def test_a_file_that_the_wish_has_not_is_404(as_alice: Client, name: str) -> None:
    assert as_alice.get(f"/request/{name}?{query()}").status_code == 404


def test_the_page_says_how_to_apply_them_and_links_to_itself(as_alice: Client) -> None:
    html = as_alice.get(f"/request/?{query()}").content.decode()
    code = {key: unescape(text) for key, text in code_of(html).items()}
    assert code["command"] == "kubectl apply --namespace=ml-team --filename=template.yaml --filename=pod.yaml"
    assert code["permalink"].startswith("http://testserver/request/?")
    again = as_alice.get(code["permalink"].removeprefix("http://testserver"))
    assert code_of(again.content.decode()) == code_of(html)


def test_keys_that_are_not_ours_are_kept_in_the_links_and_escaped(as_alice: Client) -> None:
    html = as_alice.get(f"/request/?{query()}&{urlencode({'x': '"><script>'})}").content.decode()
    assert "<script>&" not in html
    assert '"><script>' not in html
    assert "x=%22%3E%3Cscript%3E" in code_of(html)["permalink"]
