"""The control plane itself: it serves what it says, lets in whom it should, and tells what was done."""

import json

import pytest

from tests.cluster.cluster import Cluster, ClusterError


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
