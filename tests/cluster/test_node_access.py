"""The node's own way to an API server: what it reads of kubeconfig files and ServiceAccounts, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dra.kube import access, requests
from dra.kube.client import KubeClient
from dra.kube.errors import ForbiddenError, UnauthorizedError, UnreachableError
from dra.kube.requests import DEVICE_CLASSES
from tests.cluster.access import BearerToken, ClientCertificate
from tests.cluster.cluster import Cluster
from tests.cluster.driver import CHECKOUT
from tests.nodedriver import apiserver

ACCOUNT = "system:serviceaccount:node-access:reader"
READ = requests.list_page(DEVICE_CLASSES)


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> str:
    """Of a ServiceAccount that the API server knows and lets read nothing."""
    cluster.make_namespace("node-access")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    cluster.call("POST", "/api/v1/namespaces/node-access/serviceaccounts", account)
    cluster.service_account_kubeconfig("node-access", "reader")
    credential = cluster.access(ACCOUNT).credential
    assert isinstance(credential, BearerToken)
    return credential.token


def write(folder: Path, cluster: Mapping[str, object], user: Mapping[str, object], current: str = "here") -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": current,
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_files_beside_the_kubeconfig(cluster: Cluster, tmp_path: Path) -> None:
    admin = cluster.access()
    assert isinstance(admin.credential, ClientCertificate)
    (tmp_path / "ca.crt").write_bytes(admin.ca.read_bytes())
    (tmp_path / "tls.crt").write_bytes(admin.credential.certificate.read_bytes())
    (tmp_path / "tls.key").write_bytes(admin.credential.key.read_bytes())
    files = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    path = write(tmp_path, {"server": f"{cluster.url}/", "certificate-authority": "ca.crt"}, files)

    client = KubeClient.of_node(str(path))

    assert client.server == cluster.url
    assert json.loads(client.send(READ))["kind"] == "DeviceClassList"


def test_a_token_file_is_read_anew_when_it_is_replaced(cluster: Cluster, token: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("nonsense\n")
    path = write(tmp_path, {"server": cluster.url, "certificate-authority": str(cluster.ca)}, {"tokenFile": "token"})
    client = KubeClient.of_node(str(path))
    with pytest.raises(UnauthorizedError):
        client.send(READ)

    (tmp_path / "next").write_text(f"{token}\n")
    (tmp_path / "next").replace(tmp_path / "token")
    with pytest.raises(ForbiddenError, match=f'User "{ACCOUNT}" cannot list'):
        client.send(READ)

    (tmp_path / "token").unlink()
    with pytest.raises(ForbiddenError, match=ACCOUNT):  # the last one serves on
        client.send(READ)


def test_a_pod_s_own_account(cluster: Cluster, token: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token)
    (tmp_path / "ca.crt").write_bytes(cluster.ca.read_bytes())
    url = urlsplit(cluster.url)
    environment = {"KUBERNETES_SERVICE_HOST": str(url.hostname), "KUBERNETES_SERVICE_PORT": str(url.port)}

    client = KubeClient(access.of_pod(environment, tmp_path))

    with pytest.raises(ForbiddenError, match=ACCOUNT):
        client.send(READ)


def test_an_address_with_a_path_keeps_it(tmp_path: Path) -> None:
    with apiserver.serve(tmp_path / "kubeconfig") as store:
        text = (tmp_path / "kubeconfig").read_text()
        (tmp_path / "kubeconfig").write_text(re.sub(r'(server: "[^"]+)"', r'\1/clusters/one/"', text))
        KubeClient.of_node(str(tmp_path / "kubeconfig")).send(READ)
    assert store.requests == [("GET", f"/clusters/one{READ.path}")]


def test_an_address_of_ipv6_has_brackets(tmp_path: Path, cluster: Cluster) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(cluster.ca.read_bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert access.of_pod(environment, tmp_path).server == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "KUBERNETES_SERVICE_PORT are not set, so this is no pod: name a kubeconfig file"),
        ({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, "the ServiceAccount in /nowhere can't be"),
    ],
)
def test_no_account_is_told(environment: dict[str, str], reason: str) -> None:
    with pytest.raises(UnreachableError, match=f"^no usable configuration for a cluster: .*{re.escape(reason)}"):
        access.of_pod(environment, Path("/nowhere"))


@pytest.mark.parametrize(
    ("cluster_fields", "user_fields", "current", "reason"),
    [
        ({}, {"exec": {"command": "aws"}}, "here", "exec can't be used here"),
        ({"proxy-url": "http://p"}, {"username": "u"}, "here", "proxy-url, username can't be used here"),
        ({"insecure-skip-tls-verify": True}, {}, "here", "insecure-skip-tls-verify can't be used here"),
        ({}, {}, "there", "current-context, or the cluster or user that it names, is not in it"),
        ({"certificate-authority-data": "%"}, {}, "here", "a field that ends in -data is not base64"),
        ({"certificate-authority": "none.crt"}, {}, "here", "No such file"),
        ({}, {"tokenFile": "none"}, "here", "No such file"),
        ({"server": "127.0.0.1:6443"}, {}, "here", "server '127.0.0.1:6443' is no address of http or https"),
        ({"server": "https://h:port"}, {}, "here", "Port could not be cast to integer value as 'port'"),
        ({"server": 5}, {}, "here", r"Expected `str`, got `int` - at `$.clusters[0].cluster.server`"),
    ],
)
def test_what_can_not_be_used_is_named(
    tmp_path: Path, cluster_fields: dict[str, Any], user_fields: dict[str, Any], current: str, reason: str
) -> None:
    path = write(tmp_path, cluster_fields, user_fields, current)
    with pytest.raises(
        UnreachableError, match=f"^no usable configuration for a cluster: {path}: .*{re.escape(reason)}"
    ):
        KubeClient.of_node(str(path))


def test_the_node_driver_does_without_the_portal_s_packages() -> None:
    spared = ("kubernetes", "urllib3", "yaml", "re2")
    code = f"import sys, nodedriver.main; print(sorted(each for each in {spared} if each in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
