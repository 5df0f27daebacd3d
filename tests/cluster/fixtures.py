"""The real cluster for pytest: fixtures, the marks that follow from them, and the count of what really ran.

A test asks for `cluster`, `node` or `hollow_nodes` and needs no mark; the mark is set by what it asks for.
`PORTICO_NODE=0` (`make test NODE=0`) leaves the node-level tests out, and the end of the run says so.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import build, folders
from tests.cluster.cluster import Cluster
from tests.cluster.hollow import HollowNodes
from tests.cluster.node import NeedsRootError, Node

# What a test asks for decides its mark; each of these fixtures stands for something that has to be installed.
MARKING_FIXTURES = ("cluster", "node", "browser", "postgres", "redis")
COUNTED = ("node", "browser")

_ran = pytest.StashKey[Counter[str]]()
_left_out = pytest.StashKey[int]()
_logs = pytest.StashKey[Path]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        asked = getattr(item, "fixturenames", ())
        for name in MARKING_FIXTURES:
            if name in asked:
                item.add_marker(name)
    if os.environ.get("PORTICO_NODE") == "0":
        _leave_out_node_level(config, items)


def _leave_out_node_level(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.get_closest_marker("node")]
    config.stash[_left_out] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("node")]


def pytest_runtest_call(item: pytest.Item) -> None:
    # Only what got as far as its own body has run; a fixture that failed proves nothing.
    ran = item.config.stash.setdefault(_ran, Counter())
    ran.update(name for name in COUNTED if item.get_closest_marker(name))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    ran = config.stash.get(_ran, Counter[str]())
    terminalreporter.write_line(f"node-level tests run: {ran['node']}, browser tests run: {ran['browser']}")
    if left_out := config.stash.get(_left_out, 0):
        terminalreporter.write_line(f"node-level tests left out by PORTICO_NODE=0: {left_out}")
    if logs := config.stash.get(_logs, None):
        terminalreporter.write_line(f"logs of the cluster were kept in {logs}")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real control plane for the whole run; tests make namespaces and users of their own in it."""
    _build(request.config, "kubernetes")
    with Cluster() as running:
        yield running
        if request.session.testsfailed:
            request.config.stash[_logs] = folders.keep_logs(running.folder)


@pytest.fixture(scope="session")
def node(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Node]:
    """The real node of the run, `node-1`; pods name its image by `tests.cluster.node.IMAGE`."""
    _build(request.config, "containerd")
    try:
        made = Node(cluster)
    except NeedsRootError as error:
        pytest.fail(str(error), pytrace=False)
    with made as running:
        yield running


@pytest.fixture
def hollow_nodes(cluster: Cluster) -> Iterator[HollowNodes]:
    """Makes nodes without a kubelet; they are gone after the test."""
    made = HollowNodes(cluster)
    yield made
    made.remove_all()


def _build(config: pytest.Config, *names: str) -> None:
    # A cold build takes minutes: its progress goes past pytest's capture, else the run looks dead.
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        for name in names:
            build.programs(name)
