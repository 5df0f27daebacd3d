"""Creating and deleting a template in a real cluster, from the form to the API server's audit log.

The portal runs as the chart's web account and comes through a relay, which records what it sends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from claims.lifecycle import State
from claims.models import GpuRequest, GpuRequestEvent
from claims.services import advance
from claims.services.preview import preview
from claims.services.submit import Submission, submit
from dra.kube.client import KubeClient
from portal.cluster import person_of
from portal.models import Team, TeamNamespace, User
from tests.claims.pages import create_form
from tests.claims.rows import put_fleet
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.relay import Relay
from tests.cluster.waiting import wait_until

TEAMS = {"ml-team": ["ml-team"], "inference-team": ["inference-team"]}
SYSTEM = "portico-system"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    """The chart's roles, with the namespaces of both teams."""
    made = apply_roles(cluster, namespace=SYSTEM, teams=TEAMS, driver_name="gpu.portico.dev", prefix="portico:")
    cluster.service_account_kubeconfig(SYSTEM, made.web)
    cluster.service_account_kubeconfig(SYSTEM, made.worker)
    return made


@pytest.fixture
def relay(cluster: Cluster, accounts: ServiceAccounts, settings: Settings, tmp_path: Path) -> Iterator[Relay]:
    """The portal's only way to the cluster; its account is the chart's."""
    put_fleet()
    with Relay(cluster.access(f"system:serviceaccount:{SYSTEM}:{accounts.web}")) as running:
        settings.KUBECONFIG = str(running.kubeconfig(tmp_path))
        yield running


@pytest.fixture
def worker(cluster: Cluster, accounts: ServiceAccounts) -> KubeClient:
    """The workers' own way in."""
    user = f"system:serviceaccount:{SYSTEM}:{accounts.worker}"
    return KubeClient.from_environment(str(cluster.kubeconfig(user)))


@pytest.fixture(autouse=True)
def clean(cluster: Cluster) -> Iterator[None]:
    """No template of this test is left."""
    yield
    for namespace in TEAMS:
        cluster.kubectl("delete", "resourceclaimtemplates", "--all", "-n", namespace)


def query(name: str, **changes: str) -> str:
    """The address of a form, without its number."""
    values = {"ns": "ml-team", "name": name, "class": "physical-gpu", "count": "1", "share": "100"} | changes
    return urlencode(values | {"form": number_of(name)})


def number_of(name: str) -> str:
    """The number of that form."""
    return f"number0{name.replace('-', '')}"


def create(client: Client, form: str) -> Any:
    """What a browser does: look at the form, press Create; without that button the bare values are sent."""
    sent = create_form(client.get(f"/request/?{form}").content.decode())
    return client.post("/requests/", sent or dict(parse_qsl(form)))


def submission(user: User, form: str) -> Submission:
    key = dict(parse_qsl(form))["form"]
    seen = preview(user=user, query=form, key=key)
    assert seen.files is not None
    return Submission(user=user, person=person_of(user), query=form, key=key, digest=seen.files.template.digest)


def names(cluster: Cluster, namespace: str = "ml-team") -> list[str]:
    return [each["metadata"]["name"] for each in cluster.call("GET", TEMPLATES.format(namespace))["items"]]


def test_page_download_and_body_are_the_same_bytes_and_the_object_is_the_persons(
    as_alice: Client, relay: Relay, cluster: Cluster
) -> None:
    form = query("bytes", share="25", memory="10Gi")
    download = as_alice.get(f"/request/template.yaml?{form}").content
    answer = create(as_alice, form)

    assert answer.status_code == 303
    dry, real = (each for each in relay.recorded if each.method == "POST")
    assert dry.body == real.body == download
    assert "dryRun=All" in dry.target
    assert "dryRun" not in real.target
    assert "fieldValidation=Strict" in real.target
    assert real.header("Content-Type") == ["application/yaml"]
    assert real.header("Impersonate-User") == ["portico:alice"]
    assert real.header("Impersonate-Group") == ["portico:ml-team"]
    row = GpuRequest.objects.get()
    assert answer["Location"] == f"/requests/{row.pk}/"
    assert row.template.encode() == download
    made = cluster.call("GET", f"{TEMPLATES.format('ml-team')}/bytes")
    assert (row.state, row.template_uid) == (State.CREATED, made["metadata"]["uid"])
    assert made["metadata"]["labels"] == made["spec"]["metadata"]["labels"] == {"portico.dev/request": "number0bytes"}
    assert made["spec"]["spec"]["devices"]["requests"][0]["exactly"]["capacity"] == {
        "requests": {"memory": "10Gi", "sharePercent": "25"}
    }


def test_the_audit_logs_name_the_person_on_every_write_and_never_the_portal_alone(
    as_alice: Client, relay: Relay, cluster: Cluster, accounts: ServiceAccounts
) -> None:
    create(as_alice, query("audited"))
    row = GpuRequest.objects.get()
    as_alice.post(f"/requests/{row.pk}/withdraw/")

    def written() -> list[dict[str, Any]]:
        about = {"resource": "resourceclaimtemplates", "name": "audited"}
        events = [each for each in cluster.audit() if about.items() <= each.get("objectRef", {}).items()]
        return [each for each in events if each["verb"] != "get"]

    events = wait_until(lambda: found if len(found := written()) >= 3 else None, "three writes in the audit log")
    assert [each["verb"] for each in events if each["stage"] == "ResponseComplete"] == ["create", "create", "delete"]
    for each in events:
        assert each["user"]["username"] == f"system:serviceaccount:{SYSTEM}:{accounts.web}"
        assert each["impersonatedUser"]["username"] == "portico:alice"
        assert "portico:ml-team" in each["impersonatedUser"]["groups"]
    portal = [each for each in cluster.audit() if each["user"]["username"].endswith(f":{accounts.web}")]
    assert portal
    assert all("impersonatedUser" in each for each in portal)
    lines = GpuRequestEvent.objects.values_list("username", "verb", "result")
    assert list(lines) == [("alice", "submit", "created"), ("alice", "withdraw", "withdrawn")]
    assert all(GpuRequestEvent.objects.values_list("request_id", flat=True))


def test_pressing_create_twice_makes_one_object_and_one_row(as_alice: Client, relay: Relay) -> None:
    first, second = (create(as_alice, query("twice")) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert GpuRequest.objects.count() == 1
    assert len(relay.writes()) == 1
    assert GpuRequestEvent.objects.count() == 1


def test_two_submits_at_once_make_one_object_and_one_row(
    alice: User, relay: Relay, cluster: Cluster, tmp_path: Path
) -> None:
    sent = submission(alice, query("at-once"))
    client = KubeClient.from_environment(str(relay.kubeconfig(tmp_path)))
    rows: list[int] = []

    def press() -> None:
        from django.db import connection  # noqa: PLC0415 - one for each thread

        try:
            rows.append(submit(sent, cluster=client).pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=press) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = GpuRequest.objects.get()
    assert rows == [row.pk] * 4
    assert row.state == State.CREATED
    assert names(cluster) == ["at-once"]
    assert GpuRequestEvent.objects.count() == 1


def test_a_name_that_exists_is_409_with_the_servers_sentence(as_alice: Client, relay: Relay) -> None:
    create(as_alice, query("taken"))
    answer = create(as_alice, query("taken").replace(number_of("taken"), "anothernumber"))
    text = unescape(answer.content.decode())
    assert answer.status_code == 409
    assert "taken exists in ml-team already" in text
    assert 'resourceclaimtemplates.resource.k8s.io "taken" already exists' in text
    assert GpuRequest.objects.count() == 1
    assert len(relay.writes()) == 1


def test_a_person_without_the_right_is_403_with_the_servers_sentence_and_the_check(
    as_alice: Client, relay: Relay, ml_team: Team, cluster: Cluster
) -> None:
    # The portal's own table says that Alice works there; the cluster's roles know better.
    TeamNamespace.objects.create(team=ml_team, namespace="inference-team")
    answer = create(as_alice, query("foreign", ns="inference-team"))
    text = unescape(answer.content.decode())
    assert answer.status_code == 403
    assert 'User "portico:alice" cannot create resource "resourceclaimtemplates"' in text
    assert "kubectl auth can-i create resourceclaimtemplates.resource.k8s.io --namespace=inference-team" in text
    assert "--as=portico:alice --as-group=portico:ml-team" in text
    assert not GpuRequest.objects.exists()
    assert names(cluster, "inference-team") == []


def test_a_namespace_where_the_portal_may_act_for_nobody_is_the_administrators_matter(
    as_alice: Client, relay: Relay, ml_team: Team, cluster: Cluster
) -> None:
    TeamNamespace.objects.create(team=ml_team, namespace="default")
    answer = create(as_alice, query("elsewhere", ns="default"))
    text = unescape(answer.content.decode())
    assert answer.status_code == 502
    assert "The portal may not act in your name" in text
    assert "impersonate" in text
    assert names(cluster, "default") == []


def test_a_person_of_another_team_never_reaches_the_cluster(as_charlie: Client, relay: Relay, ml_team: Team) -> None:
    assert create(as_charlie, query("foreign")).status_code == 422
    assert relay.recorded == []


def test_an_admission_policy_is_403_with_its_own_words(as_alice: Client, relay: Relay, cluster: Cluster) -> None:
    with_policy(cluster, "object.spec.spec.devices.requests[0].exactly.count <= 2", "at most two devices for this team")
    try:
        answer = wait_until(
            lambda: (
                found if (found := create(as_alice, query("denied", count="3"))).status_code != 303 else forget(cluster)
            ),
            "the policy",
        )
        text = unescape(answer.content.decode())
        assert answer.status_code == 403
        assert "A policy of the cluster refused this" in text
        assert "at most two devices for this team" in text
        assert 'value="3"' in text
        assert not GpuRequest.objects.exists()
    finally:
        cluster.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "few-devices")


def test_a_full_quota_is_403_with_its_own_words(as_alice: Client, relay: Relay, cluster: Cluster) -> None:
    hard = {"count/resourceclaimtemplates.resource.k8s.io": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": hard}}
    path = "/api/v1/namespaces/ml-team/resourcequotas"
    cluster.call("POST", path, quota)
    try:
        wait_until(lambda: cluster.call("GET", f"{path}/none").get("status", {}).get("hard"), "the quota's status")
        answer = create(as_alice, query("too-much"))
        text = unescape(answer.content.decode())
        assert answer.status_code == 403
        assert "A quota of ml-team is full" in text
        assert "exceeded quota: none" in text
        assert not GpuRequest.objects.exists()
    finally:
        cluster.call("DELETE", f"{path}/none")


def test_an_answer_that_is_lost_is_found_out_by_reading(
    as_alice: Client, relay: Relay, worker: KubeClient, cluster: Cluster
) -> None:
    relay.drop_next_write()
    answer = create(as_alice, query("lost"))
    row = GpuRequest.objects.get()
    assert answer.status_code == 303
    assert row.state == State.SUBMITTING
    assert "answer is not known yet" in unescape(as_alice.get(answer["Location"]).content.decode())

    advance.advance(row.pk, cluster=worker)
    row.refresh_from_db()
    assert row.state == State.CREATED
    assert row.template_uid == cluster.call("GET", f"{TEMPLATES.format('ml-team')}/lost")["metadata"]["uid"]


def test_pressing_create_again_after_a_lost_answer_takes_the_object_that_is_there(
    as_alice: Client, relay: Relay, cluster: Cluster
) -> None:
    relay.drop_next_write()
    create(as_alice, query("again"))
    create(as_alice, query("again"))
    row = GpuRequest.objects.get()
    assert row.state == State.CREATED
    assert names(cluster) == ["again"]
    assert row.template_uid == cluster.call("GET", f"{TEMPLATES.format('ml-team')}/again")["metadata"]["uid"]


def test_a_submit_that_never_arrived_can_be_sent_again(
    alice: User, as_alice: Client, relay: Relay, worker: KubeClient, cluster: Cluster
) -> None:
    relay.drop_next_write()
    create(as_alice, query("never"))
    cluster.call("DELETE", f"{TEMPLATES.format('ml-team')}/never")
    row = GpuRequest.objects.get()
    advance.advance(row.pk, cluster=worker)
    row.refresh_from_db()
    assert row.state == State.NOT_CREATED
    create(as_alice, query("never"))
    row.refresh_from_db()
    assert row.state == State.CREATED
    assert names(cluster) == ["never"]


def test_deleting_takes_the_template_away_and_keeps_the_request(
    as_alice: Client, relay: Relay, cluster: Cluster
) -> None:
    create(as_alice, query("short"))
    row = GpuRequest.objects.get()
    answer = as_alice.post(f"/requests/{row.pk}/withdraw/", follow=True)
    assert "The template short in ml-team was deleted" in answer.content.decode()
    row.refresh_from_db()
    assert row.state == State.WITHDRAWN
    assert names(cluster) == []
    assert as_alice.post(f"/requests/{row.pk}/withdraw/").status_code == 409


def test_another_template_of_the_same_name_is_not_deleted(as_alice: Client, relay: Relay, cluster: Cluster) -> None:
    create(as_alice, query("replaced"))
    row = GpuRequest.objects.get()
    path = TEMPLATES.format("ml-team")
    body = cluster.call("GET", f"{path}/replaced")
    cluster.call("DELETE", f"{path}/replaced")
    cluster.call("POST", path, {**body, "metadata": {"name": "replaced", "namespace": "ml-team"}})
    answer = as_alice.post(f"/requests/{row.pk}/withdraw/")
    assert answer.status_code == 409
    assert "another one was made under the same name" in unescape(answer.content.decode())
    assert names(cluster) == ["replaced"]
    row.refresh_from_db()
    assert row.state == State.GONE


def test_a_template_deleted_by_hand_is_gone_after_a_look(
    as_alice: Client, relay: Relay, worker: KubeClient, cluster: Cluster
) -> None:
    create(as_alice, query("by-hand"))
    row = GpuRequest.objects.get()
    advance.advance(row.pk, cluster=worker)
    row.refresh_from_db()
    assert row.state == State.CREATED
    cluster.call("DELETE", f"{TEMPLATES.format('ml-team')}/by-hand")
    advance.advance(row.pk, cluster=worker)
    row.refresh_from_db()
    assert row.state == State.GONE


def test_all_files_pass_the_servers_strict_dry_run(as_alice: Client, relay: Relay, cluster: Cluster) -> None:
    form = query("files", memory="40Gi", strategy="MPS")
    for slot, path in {
        "template": TEMPLATES.format("ml-team"),
        "pod": "/api/v1/namespaces/ml-team/pods",
        "quota": "/api/v1/namespaces/ml-team/resourcequotas",
    }.items():
        content = as_alice.get(f"/request/{slot}.yaml?{form}").content
        cluster.raw("POST", f"{path}?dryRun=All&fieldValidation=Strict", content, "application/yaml").expect()


def with_policy(cluster: Cluster, expression: str, message: str) -> None:
    """A ValidatingAdmissionPolicy over templates, bound everywhere."""
    rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    cluster.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "few-devices"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule | {"resources": ["resourceclaimtemplates"]}]},
                "validations": [{"expression": expression, "message": message}],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "few-devices"},
            "spec": {"policyName": "few-devices", "validationActions": ["Deny"]},
        },
    )


def forget(cluster: Cluster) -> None:
    """The policy was not known yet: what slipped through is taken away."""
    cluster.kubectl("delete", "resourceclaimtemplates", "--all", "-n", "ml-team")
    GpuRequest.objects.all().delete()
