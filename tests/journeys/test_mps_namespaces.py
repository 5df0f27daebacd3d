"""Shares of different size under MPS protocol 3 on a real cluster: the server holds each to its own limits.

The card of an H100 has 81,559 MiB; the driver keeps 512 MiB for contexts; of the rest a quarter is 20,261 MiB, a half
40,523.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from nodedriver.mps import MpsClient
from nodedriver.ports import MpsError
from simulator.silicon.hardware import MpsDaemon, MpsNamespace
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.processes import ProgramError
from tests.cluster.waiting import wait_until
from tests.journeys.conftest import DRIVER_NAME
from tests.journeys.footprint import footprint
from tests.journeys.overlay import Document, overlaid
from tests.journeys.test_device_health import SELECTOR, made
from tests.journeys.workloads import Workloads
from tests.nodedriver.mps import offer_namespaces

TEAM = "inference-team"
CLASS = "own-namespace"
MEMORY_MIB = {"quarter": 20261, "half": 40523}
BARE = ("env", "-i", "PATH=/bin")


@pytest.fixture(scope="module")
def speaking(node_driver: NodeDriver) -> Iterator[NodeDriver]:
    """A machine whose driver offers protocol 3, and a supervisor that is told to speak it."""
    wait_until(lambda: footprint(node_driver)["checkpoint"] == [], "the end of what was prepared before", 90)
    version = node_driver.state.read().driver_version
    offer_namespaces(node_driver.state)
    supervise(node_driver, "--mps-protocol", "3")
    yield node_driver
    node_driver.state.change(lambda silicon: (replace(silicon, driver_version=version), None))
    supervise(node_driver)


def supervise(driver: NodeDriver, *flags: str) -> None:
    """The MPS supervisor in the place of the one before."""
    driver.end("mpsd")
    driver.run("mpsd", *flags)
    wait_until(lambda: answers(driver), "the answer of the MPS supervisor", 60)


def answers(driver: NodeDriver) -> bool:
    try:
        MpsClient(driver.plugin_dir / "mps" / "mpsd.sock").list()
    except MpsError:
        return False
    return True


@pytest.fixture
def team(speaking: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    parameters = {
        "apiVersion": f"resource.{DRIVER_NAME}/v1alpha1", "kind": "GpuConfig", "sharing": {"strategy": "MPS"}
    }  # fmt: skip
    config = [{"opaque": {"driver": DRIVER_NAME, "parameters": parameters}}]
    cluster.apply(made("DeviceClass", CLASS, {"selectors": [{"cel": {"expression": SELECTOR}}], "config": config}))
    workloads = Workloads(cluster, TEAM)
    yield workloads
    workloads.clear()


def pod(name: str, share: int) -> tuple[Document, Document]:
    """A pod with that share of a card, and the template of its claim."""
    exactly = {"deviceClassName": CLASS, "capacity": {"requests": {"sharePercent": str(share)}}}
    template = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
        "containers": [{"name": "app", "image": "any", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    metadata = {"name": name, "namespace": TEAM}
    document = overlaid({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return made("ResourceClaimTemplate", name, template, namespace=TEAM), document


def namespaces(driver: NodeDriver) -> dict[float | None, int | None]:
    """Of the one daemon's one server, beside its default one: memory limits in MiB by thread percentages."""
    (daemon,) = driver.state.read().mps_daemons
    return {each.active_thread_percentage: (each.memory_limit or 0) // 2**20 for each in own_namespaces(daemon)}


def own_namespaces(daemon: MpsDaemon) -> list[MpsNamespace]:
    (server,) = daemon.servers
    return [each for each in server.namespaces if each.name != "default"]


def alloc(driver: NodeDriver, name: str, mebibytes: int, *before: str) -> str:
    """How a CUDA program in the pod reaches the card, and what it got."""
    said = driver.node.exec(name, "app", [*before, "cudaclient", "alloc", f"{mebibytes}M"], TEAM)
    answer = json.loads(said)
    return f"{answer['via']}: {answer['result']}"


def enforcers(team: Workloads) -> list[str] | None:
    """Who enforces the limits of both claims, once their statuses say so."""
    found = [each for name in MEMORY_MIB for each in team.claim_of(name)["status"].get("devices", [])]
    return [each["data"]["enforcedBy"] for each in found] if len(found) == len(MEMORY_MIB) else None


def test_each_pod_is_held_to_its_own_share_whatever_its_environment(speaking: NodeDriver, team: Workloads) -> None:
    untouched = footprint(speaking)
    team.cluster.apply(*pod("quarter", 25), *pod("half", 50))
    team.await_running(2)
    (quarter,), (half,) = team.results("quarter"), team.results("half")
    assert quarter["device"] == half["device"]
    assert [daemon.protocol for daemon in speaking.state.read().mps_daemons] == [3]
    assert namespaces(speaking) == {25.0: 20261, 50.0: 40523}

    for name, memory in MEMORY_MIB.items():
        assert alloc(speaking, name, memory) == "mps: CUDA_SUCCESS"
        for environment in ((), BARE):
            with pytest.raises(ProgramError, match="CUDA_ERROR_OUT_OF_MEMORY"):
                alloc(speaking, name, memory + 1, *environment)
    assert wait_until(lambda: enforcers(team), "the device statuses") == ["Server", "Server"]

    team.delete("pod", "quarter")
    wait_until(lambda: namespaces(speaking) == {50.0: 40523}, "the end of the quarter's namespace", 60)
    assert alloc(speaking, "half", MEMORY_MIB["half"]) == "mps: CUDA_SUCCESS"
    team.delete("pod", "half")
    wait_until(lambda: footprint(speaking) == untouched, "a node as it was before the pods", 60)
