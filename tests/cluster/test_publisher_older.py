"""The publisher against an API server of an older release, and against one that falls back to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from dra.kube import requests
from dra.kube.client import KubeClient
from dra.kube.errors import KubeError
from dra.kube.port import list_all
from dra.objects import ResourceSlice, decode
from nodedriver.lastpublished import LastPublished
from nodedriver.publisher import Publisher
from nodedriver.serverfeatures import detect_features
from tests.cluster.access import Access
from tests.cluster.chart import ServiceAccounts
from tests.cluster.cluster import ADMIN, Cluster
from tests.cluster.controlplane import HOST, free_ports
from tests.cluster.test_publisher import (
    CARDS,
    DRIVER,
    NODE,
    accounts,
    content,
    devices,
    driver_client,
    last,
    own_node,
)

__all__ = ["accounts", "last", "own_node"]  # fixtures


@pytest.fixture
def older_client(cluster: Cluster) -> Iterator[KubeClient]:
    """An API server that behaves as 1.34 does, on data of its own beside the cluster's."""
    (port,) = free_ports(1)
    command = [
        *cluster._plane.command("kube-apiserver"),
        f"--secure-port={port}", "--etcd-prefix=/older", "--emulated-version=1.34",
        f"--audit-log-path={cluster.folder / 'older-audit.log'}",
    ]  # fmt: skip
    server = cluster.processes.start("kube-apiserver-older", command)
    admin = cluster.access(ADMIN)
    access = Access(HOST, port, cluster.ca, admin.user, admin.credential)
    kubeconfig = cluster.folder / "older.json"
    kubeconfig.write_text(access.kubeconfig())
    client = KubeClient.from_environment(str(kubeconfig))
    server.wait_ready(lambda: is_ready(client), 60.0)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    client.send(requests.create(requests.NODES, json.dumps(node).encode()))
    yield client
    for each in published(client):
        client.send(requests.delete(requests.RESOURCE_SLICES, each.metadata.name))
    client.send(requests.delete(requests.NODES, NODE))
    server.stop(grace=2.0)


def published(client: KubeClient) -> list[ResourceSlice]:
    pages = list_all(client, requests.RESOURCE_SLICES)
    return [decode(item, ResourceSlice) for page in pages for item in page.items]


def is_ready(client: KubeClient) -> bool:
    try:
        return client.send(requests.Request("GET", "/readyz")) == b"ok"
    except KubeError:
        return False


def test_an_older_server_is_given_whole_cards_alone(older_client: KubeClient, last: LastPublished) -> None:
    features = detect_features(older_client, DRIVER, NODE)
    assert not features.shares
    assert not features.counters
    assert not features.waiting  # binding conditions
    Publisher(older_client, last, driver_name=DRIVER, node_name=NODE).publish(content())

    found = published(older_client)
    assert [d.name for s in found for d in s.spec.devices] == [f"gpu-{i}" for i in range(8)]
    assert not any(d.allow_multiple_allocations or d.consumes_counters for s in found for d in s.spec.devices)


class Switched:
    """The way to one API server, and from a moment on to another, as after a rollback of the control plane."""

    def __init__(self, now: KubeClient) -> None:
        self.now = now

    def send(self, request: requests.Request) -> bytes:
        return self.now.send(request)

    def stream(self, request: requests.Request) -> AbstractContextManager[Iterator[bytes]]:
        return self.now.stream(request)

    def server_time(self) -> datetime | None:
        return self.now.server_time()


def test_a_server_that_lost_features_is_noticed_by_what_it_drops(
    cluster: Cluster, accounts: ServiceAccounts, own_node: str, older_client: KubeClient, last: LastPublished
) -> None:
    way = Switched(driver_client(cluster, accounts))
    publisher = Publisher(way, last, driver_name=DRIVER, node_name=NODE)
    publisher.publish(content(CARDS[:1]))
    assert len(devices(cluster)) == 26, own_node
    way.now = older_client
    with capture_logs() as logs:
        publisher.publish(content(CARDS[:1]))
    found = published(older_client)
    assert [device.name for each in found for device in each.spec.devices] == ["gpu-0"]
    assert not found[0].spec.devices[0].allow_multiple_allocations
    assert "API server dropped fields" in {line["event"] for line in logs}
