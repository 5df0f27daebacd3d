"""One node with the production driver for the journeys, under the article's driver name and the chart's own roles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.cluster import build
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.node import Node
from tests.journeys.embedded import Demo, running, stand_still
from tests.journeys.overlay import IMAGE

DRIVER_NAME = "gpu.deckhouse.io"
expect.set_options(timeout=30_000)  # a machine that runs a whole cluster beside is slow
TEAMS = {"ml-team": ["ml-team"], "inference-team": ["inference-team"]}
SYSTEM = "portico-system"
PREFIX = "portico:"


@pytest.fixture(scope="session")
def accounts(cluster: Cluster) -> ServiceAccounts:
    """The chart's accounts and roles, with the namespaces of both teams."""
    return apply_roles(cluster, namespace=SYSTEM, teams=TEAMS, driver_name=DRIVER_NAME, prefix=PREFIX)


@pytest.fixture(scope="session")
def node_driver(accounts: ServiceAccounts, node: Node) -> Iterator[NodeDriver]:
    """The driver `gpu.deckhouse.io` on `node-1`: eight H100 of stand-in silicon, a card of AMD's and one of Intel's."""
    node.load_image(IMAGE, {"/bin/cudaclient": build.programs("cudaclient") / "cudaclient"})
    with NodeDriver(node, accounts, DRIVER_NAME, "three-vendors", PORTICO_DEVICE_METADATA="yes") as running:
        yield running


@pytest.fixture(scope="module")
def article(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo of the article's cluster, whose people stand still once it is read."""
    with running(tmp_path_factory.mktemp("article") / "demo.log") as demo:
        yield stand_still(demo)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo of the mixed fleet, whose people stand still once it is read."""
    with running(tmp_path_factory.mktemp("mixed") / "demo.log", "--scenario", "mixed") as demo:
        yield stand_still(demo)
