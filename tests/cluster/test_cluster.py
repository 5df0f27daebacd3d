"""The control plane itself: it serves what it says, lets in whom it should, and tells what was done."""

import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.api import Api, ApiError
from tests.cluster.certificates import Authority
from tests.cluster.cluster import Cluster, ClusterError
from tests.cluster.hollow import HollowNodes


def test_serves_kubernetes_1_37_2(cluster: Cluster) -> None:
    assert cluster.call("GET", "/version")["gitVersion"] == "v1.37.2"
    assert json.loads(cluster.kubectl("version", "--output=json"))["clientVersion"]["gitVersion"] == "v1.37.2"


def test_serves_all_of_dra(cluster: Cluster) -> None:
    kinds = {each["kind"] for each in cluster.call("GET", "/apis/resource.k8s.io/v1")["resources"]}
    assert {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceTaintRule"} <= kinds


def test_a_user_has_only_the_rights_of_its_roles(cluster: Cluster) -> None:
    cluster.make_namespace("rights")
    rights = ["--namespace=rights", "--verb=list", "--resource=configmaps"]
    cluster.kubectl("create", "role", "reader", *rights)
    cluster.kubectl("create", "rolebinding", "reader", "--namespace=rights", "--role=reader", "--group=portico:team-a")
    cluster.user_kubeconfig("portico:alice", ["portico:team-a"])
    cluster.user_kubeconfig("portico:charlie", ["portico:team-c"])

    listed = json.loads(
        cluster.kubectl("get", "configmaps", "--namespace=rights", "--output=json", user="portico:alice")
    )
    assert [each["metadata"]["name"] for each in listed["items"]] == ["kube-root-ca.crt"]
    with pytest.raises(ClusterError, match='User "portico:alice" cannot list resource "secrets"'):
        cluster.kubectl("get", "secrets", "--namespace=rights", user="portico:alice")
    with pytest.raises(ClusterError, match='User "portico:charlie" cannot list resource "configmaps"'):
        cluster.kubectl("get", "configmaps", "--namespace=rights", user="portico:charlie")


def test_any_name_can_be_a_user(cluster: Cluster) -> None:
    """Signs that mean something to openssl, to paths and to KUBECONFIG arrive as they are."""
    name, groups = "odd:né/.. +=\\", ["a/b", "c+d=e"]
    kubeconfig = cluster.user_kubeconfig(name, groups)
    assert ":" not in kubeconfig.name
    who = json.loads(cluster.kubectl("auth", "whoami", "--output=json", user=name))["status"]["userInfo"]
    assert who["username"] == name
    assert who["groups"] == [*groups, "system:authenticated"]


def test_an_unknown_user_is_an_error_here(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="nobody made the user portico:never-made"):
        cluster.kubectl("get", "pods", user="portico:never-made")


def test_a_token_bound_to_a_node_names_it(cluster: Cluster, hollow_nodes: HollowNodes) -> None:
    hollow_nodes.make(["hollow-token"])
    cluster.make_namespace("tokens")
    user = "system:serviceaccount:tokens:default"

    cluster.service_account_kubeconfig("tokens", "default")
    assert "authentication.kubernetes.io/node-name" not in who_is(cluster, user)["extra"]
    cluster.service_account_kubeconfig("tokens", "default", node="hollow-token")
    assert who_is(cluster, user)["username"] == user
    assert who_is(cluster, user)["extra"]["authentication.kubernetes.io/node-name"] == ["hollow-token"]


def who_is(cluster: Cluster, user: str) -> Any:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = cluster.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, user=user)
    return answer["status"]["userInfo"]


def test_clients_verify_the_server_by_the_clusters_own_authority(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Authority(tmp_path_factory.mktemp("other") / "ca")
    other.create()
    admin = cluster.access()
    stranger = Access(admin.host, admin.port, other.certificate, admin.user, admin.credential)
    with pytest.raises(ssl.SSLCertVerificationError), Api(stranger) as api:
        api.request("GET", "/version")
    text = subprocess.run(
        ["openssl", "verify", "-CAfile", cluster.ca, cluster.ca.parent / "server.crt"], capture_output=True, check=True
    ).stdout
    assert text.endswith(b": OK\n")


def test_the_audit_log_tells_who_wrote_as_whom(cluster: Cluster) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "audited"}}
    headers = ["--as=portico:auditee", "--as-group=portico:team-a"]
    with pytest.raises(ClusterError, match="portico:auditee"):
        cluster.kubectl("create", "--filename=-", *headers, input=json.dumps(document))

    def of_auditee(event: dict[str, Any]) -> bool:
        impersonated: str | None = event.get("impersonatedUser", {}).get("username")
        return event["verb"] == "create" and impersonated == "portico:auditee"

    (event,) = [event for event in cluster.audit() if of_auditee(event)]
    assert event["user"]["username"] == "admin"
    assert event["impersonatedUser"]["groups"] == ["portico:team-a", "system:authenticated"]
    assert event["requestURI"].startswith("/api/v1/namespaces/default/configmaps")
    assert event["responseStatus"]["code"] == 403
    assert event["stage"] == "ResponseComplete"
    assert "requestObject" not in event


def test_refusals_carry_the_servers_sentence_and_status(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match='404: namespaces "nowhere" not found') as caught:
        cluster.call("GET", "/api/v1/namespaces/nowhere")
    assert caught.value.status == 404
    answer = cluster.raw("POST", "/api/v1/namespaces?dryRun=All", b"kind: [", "application/yaml")
    assert answer.status == 400


def test_a_program_can_be_away_and_come_back(cluster: Cluster) -> None:
    with Cluster() as own:
        own.kubectl("create", "configmap", "kept")
        own.stop_program("kube-apiserver")
        with pytest.raises(ConnectionRefusedError):
            own.raw("GET", "/readyz")
        own.start_program("kube-apiserver")
        assert own.call("GET", "/api/v1/namespaces/default/configmaps/kept")["metadata"]["name"] == "kept"
    assert cluster.raw("GET", "/readyz").status == 200


def test_two_users_whose_names_look_alike_are_two(cluster: Cluster) -> None:
    assert cluster.user_kubeconfig("a/b") != cluster.user_kubeconfig("a_b")
    assert cluster.kubeconfig("a/b").stat().st_mode & 0o077 == 0


def test_an_error_in_a_cluster_of_ones_own_keeps_its_logs(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match='resource type "nothing"') as caught, Cluster() as own:
        own.kubectl("get", "nothing")
    (note,) = caught.value.__notes__
    kept = Path(note.removeprefix("All logs of the cluster were kept in "))
    assert {"etcd.log", "kube-apiserver.log", "audit.log"} <= {file.name for file in kept.iterdir()}
    assert not own.folder.exists()
    assert cluster.folder.exists()
