"""The kubelet is restarted under a running driver: it deletes the node's slices at its start, and they come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.waiting import wait_until
from tests.journeys.test_device_health import await_health, holder, whole_card_template
from tests.journeys.workloads import Workloads


@pytest.fixture
def team(node_driver: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    """A namespace with a template for one whole card."""
    yield from whole_card_template(cluster, node_driver)


def test_slices_come_back_and_pods_go_on(node_driver: NodeDriver, team: Workloads) -> None:
    team.cluster.apply(holder("before"))
    team.await_running(1)
    held = team.results("before")
    gone = {each["metadata"]["uid"] for each in node_driver.slices()}

    node_driver.node.stop_kubelet()
    node_driver.node.start_kubelet()
    wait_until(lambda: gone.isdisjoint(each["metadata"]["uid"] for each in node_driver.slices()), "new slices", 60)
    node_driver.await_published()
    names = {device["name"] for each in node_driver.slices() for device in each["spec"].get("devices", [])}
    assert held[0]["device"] in names

    assert team.results("before") == held
    await_health(team, "before", "Healthy")
    team.cluster.apply(holder("after"))
    team.await_running(2)
    assert team.results("after") != held
    team.delete("pod", "before")
    wait_until(lambda: held[0]["device"] not in node_driver.checkpoint.read_text(), "the end of what was prepared")
