"""Validate and shared claims on a real API server, through the chart's web account, as the person who asks."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from claims.lifecycle import State
from claims.models import GpuRequest
from claims.services import advance
from dra.kube.client import KubeClient
from portal.models import Team, TeamNamespace, User
from tests.browser import Looks
from tests.claims.pages import create_form
from tests.claims.rows import put_fleet
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.relay import Relay
from tests.portal_fixtures import signed_in

SYSTEM = "validate-system"
TEAMS = {"ml-team": ["ml-team"], "inference-team": ["inference-team"]}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ml-team/resourceclaims"
CORE = "/api/v1/namespaces/ml-team"
DAEMON_SET = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: main, image: x}]}
"""
# The API server wants a restart policy of a job's pods.
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"
    "spec: {template: {spec: {containers: [{name: b, image: c}]}}}\n"
)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    made = apply_roles(cluster, namespace=SYSTEM, teams=TEAMS, driver_name="gpu.portico.dev", prefix="portico:")
    for account in (made.web, made.worker):
        cluster.service_account_kubeconfig(SYSTEM, account)
    return made


@pytest.fixture
def relay(cluster: Cluster, accounts: ServiceAccounts, settings: Settings, tmp_path: Path) -> Iterator[Relay]:
    put_fleet()
    with Relay(cluster.access(f"system:serviceaccount:{SYSTEM}:{accounts.web}")) as running:
        settings.KUBECONFIG = str(running.kubeconfig(tmp_path))
        yield running
    cluster.kubectl("delete", "resourceclaims,pods,deployments", "--all", "-n", "ml-team")


def query(**changes: str) -> str:
    values = {"ns": "ml-team", "name": "tried", "class": "physical-gpu", "count": "1", "share": "100"} | changes
    return urlencode(values | {"form": "number0tried"})


def validate(client: Client, form: str) -> Any:
    return client.post("/request/validate", dict(parse_qsl(form)))


def panel(answer: Any) -> str:
    text = unescape(answer.content.decode()).split('id="validation"')[1].split("</div>")[0]
    return " ".join(text.replace("<strong>", "").replace("</strong>", "").split())


def test_everything_that_is_applied_is_tried_as_the_person_and_nothing_is_stored(
    as_alice: Client, relay: Relay, cluster: Cluster
) -> None:
    form = query(workload="deployment", **{"scale.max": "3"})
    answer = validate(as_alice, form)
    assert answer.status_code == 200
    assert "The API server would take all of it." in panel(answer)
    assert "deployment.yaml: Deployment tried would be taken." in panel(answer)
    sent = [each for each in relay.recorded if each.method == "POST"]
    assert [urlsplit(each.target).path.rpartition("/")[2] for each in sent] == [
        "resourceclaimtemplates",
        "deployments",
        "horizontalpodautoscalers",
    ]
    for each in sent:
        assert "dryRun=All" in each.target
        assert "fieldValidation=Strict" in each.target
        assert each.header("Impersonate-User") == ["portico:alice"]
    files = ("template.yaml", "deployment.yaml", "autoscaler.yaml")
    assert [each.body for each in sent] == [as_alice.get(f"/request/{name}?{form}").content for name in files]
    assert cluster.call("GET", "/apis/apps/v1/namespaces/ml-team/deployments")["items"] == []
    assert not GpuRequest.objects.exists()


def test_each_refusal_is_the_servers_own_sentence(as_alice: Client, relay: Relay, cluster: Cluster) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-pods"},
        "spec": {"hard": {"pods": "0"}},
    }
    cluster.call("POST", f"{CORE}/resourcequotas", quota)
    try:
        answer = validate(as_alice, query())
    finally:
        cluster.call("DELETE", f"{CORE}/resourcequotas/no-pods")
    text = panel(answer)
    assert "The API server would refuse 1 of 2." in text
    assert "template.yaml: ResourceClaimTemplate tried would be taken." in text
    assert "pod.yaml: A quota of ml-team is full." in text
    assert "exceeded quota: no-pods" in text


def test_a_right_that_the_person_lacks_comes_with_the_check(as_alice: Client, relay: Relay, ml_team: Team) -> None:
    TeamNamespace.objects.create(team=ml_team, namespace="inference-team")
    text = panel(validate(as_alice, query(ns="inference-team", workload="job")))
    assert "The API server would refuse 2 of 2." in text
    assert 'User "portico:alice" cannot create resource "jobs"' in text
    check = "kubectl auth can-i create jobs.batch --namespace=inference-team --as=portico:alice"
    assert f"{check} --as-group=portico:ml-team" in text


def test_what_the_portal_may_not_try_is_no_fault_of_the_file(as_alice: Client, relay: Relay) -> None:
    form = query(workload="own")
    kept = as_alice.post("/request/paste", dict(parse_qsl(form)) | {"text": DAEMON_SET})
    text = panel(validate(as_alice, urlsplit(kept["Location"]).query))
    assert "The API server would take 1 of 2; the rest was not tried." in text
    assert "The DaemonSet was not tried." in text
    assert "cannot impersonate-on:user-info:create" in text
    assert "kubectl create --dry-run=server --namespace=ml-team --filename=workload.yaml" in text


def test_a_shared_claim_is_created_followed_and_taken_back(
    as_alice: Client, relay: Relay, cluster: Cluster, accounts: ServiceAccounts
) -> None:
    form = query(claim="shared", workload="deployment", replicas="2")
    page = as_alice.get(f"/request/?{form}").content.decode()
    answer = as_alice.post("/requests/", create_form(page))
    assert answer.status_code == 303
    row = GpuRequest.objects.get()
    made = cluster.call("GET", f"{CLAIMS}/tried")
    assert (row.state, row.template_uid) == (State.CREATED, made["metadata"]["uid"])
    assert made["metadata"]["labels"] == {"portico.dev/request": "number0tried"}
    (sent,) = relay.writes()
    assert sent.body == as_alice.get(f"/request/claim.yaml?{form}").content == row.template.encode()
    assert sent.header("Impersonate-User") == ["portico:alice"]

    worker = KubeClient.from_environment(str(cluster.kubeconfig(f"system:serviceaccount:{SYSTEM}:{accounts.worker}")))
    advance.advance(row.pk, cluster=worker)
    row.refresh_from_db()
    assert row.state == State.CREATED

    taken = as_alice.post(f"/requests/{row.pk}/withdraw/", follow=True)
    assert "The claim tried in ml-team was deleted" in taken.content.decode()
    assert cluster.call("GET", CLAIMS)["items"] == []
    row.refresh_from_db()
    assert row.state == State.WITHDRAWN


def test_a_claim_of_that_name_by_another_hand_is_409(as_alice: Client, relay: Relay, cluster: Cluster) -> None:
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "physical-gpu"}}]}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "tried"}, "spec": spec}
    cluster.call("POST", CLAIMS, claim)
    page = as_alice.get(f"/request/?{query(claim='shared')}").content.decode()
    answer = as_alice.post("/requests/", create_form(page))
    assert answer.status_code == 409
    assert 'resourceclaims.resource.k8s.io "tried" already exists' in unescape(answer.content.decode())
    assert not GpuRequest.objects.exists()


def browse(context: BrowserContext, live_server: LiveServer, alice: User, form: str) -> Page:
    value = signed_in(alice).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": value, "url": live_server.url}])
    page = context.new_page()
    page.goto(f"{live_server.url}/request/?{form}")
    return page


def test_validate_and_create_in_a_browser(
    browser: Browser, live_server: LiveServer, alice: User, relay: Relay, looks: Looks
) -> None:
    with browser.new_context() as context:
        page = browse(context, live_server, alice, query(claim="shared", workload="deployment", preset="nim"))
        page.get_by_role("button", name="Validate").click()
        expect(page.locator("#validation")).to_contain_text("The API server would take all of it.")
        assert page.evaluate("document.activeElement.id") == "validate-button"
        looks.at(page, "validate-good")
        page.get_by_role("radio", name="My own manifest").check()
        expect(page.locator("#validation")).to_be_hidden()
        page.get_by_label("Manifest", exact=True).fill(DAEMON_SET.replace("image: x", "image: x, ports: [{}]"))
        page.get_by_role("button", name="Validate").click()
        expect(page.locator("#validation")).to_contain_text("the rest was not tried")
        looks.at(page, "validate-untried")
        page.get_by_label("Manifest", exact=True).fill(JOB)
        expect(page.locator("#text-workload")).to_contain_text("kind: Job")
        page.get_by_role("button", name="Validate").click()
        expect(page.locator("#validation")).to_contain_text("spec.template.spec.restartPolicy")
        looks.at(page, "validate-refused")
        page.get_by_role("button", name="Create the claim").click()
        expect(page.get_by_role("heading", name="How far it is")).to_be_visible()
        expect(page.locator("#progress")).to_contain_text("The claim exists")
        looks.at(page, "shared-created")
        page.get_by_role("link", name="Delete the claim").click()
        looks.at(page, "shared-withdraw")
        page.get_by_role("button", name="Delete the claim").click()
        expect(page.get_by_role("status")).to_contain_text("The claim tried in ml-team was deleted.")


def test_validate_without_javascript(browser: Browser, live_server: LiveServer, alice: User, relay: Relay) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = browse(context, live_server, alice, query(style="extended"))
        page.get_by_role("button", name="Validate").click()
        assert page.url.endswith("/request/validate#validation")
        assert "pod.yaml: Pod tried would be taken." in (page.locator("#validation").text_content() or "")
        page.get_by_label("Devices", exact=True).fill("2")
        page.get_by_role("button", name="Update the preview").click()
        assert "count=2" in page.url
