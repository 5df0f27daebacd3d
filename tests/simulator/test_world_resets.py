"""A living cluster of one node with A100: the production driver resets a card for a pod that waits for it."""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from simulator.scenario import NodeGroup, Scenario
from simulator.silicon.hardware import Gpu, Injection, NvmlReturn
from simulator.silicon.smi import RESET
from simulator.silicon.state import State
from simulator.silicon.tree import Tree
from simulator.world import World
from tests.nodedriver.ampere import agent
from tests.simulator.test_world import CLAIMS, PODS, Client, pod, until

pytestmark = pytest.mark.programs  # starts the node driver

DRIVER = "gpu.portico.dev"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/t/resourceclaimtemplates"
KIND = {"apiVersion": "resource.k8s.io/v1"}
ANY = KIND | {"kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}}
SPACE = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "t"}}
SECONDS = 120.0


@pytest.fixture(scope="module")
def tree() -> Iterator[Tree]:
    with TemporaryDirectory(dir="/tmp", prefix="portico-world-") as folder:
        yield Tree(Path(folder) / "1" / "m")


@pytest.fixture(scope="module")
def call(tree: Tree) -> Iterator[Client]:
    """The administrator of a world whose people's time stands still: nothing times out."""
    groups = (NodeGroup(names=("ampere",), machine="a100x8", real_driver=True),)
    world = World(Scenario(title="ampere", groups=groups), [ANY, SPACE], tree.root.parents[1])
    world.clock.set_rate(0, time.monotonic())
    try:
        world.start()
        yield Client(world.kubeconfig())
    finally:
        world.stop()


def card(tree: Tree, index: int) -> Gpu:
    return State(tree.state).read().gpus[index]


def ask(call: Client, name: str, gpu: Gpu) -> None:
    """A pod that takes a MIG device of that card and no other."""
    attributes = f'device.attributes["{DRIVER}"]'
    expression = (
        f'device.driver == "{DRIVER}" && {attributes}.deviceType == "MIG" && {attributes}.migProfile == "3g.40gb"'
    )
    expression += f' && {attributes}.parentUUID == "{gpu.uuid}"'
    exactly = {"deviceClassName": "any", "selectors": [{"cel": {"expression": expression}}]}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    call("POST", TEMPLATES, KIND | {"kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec})
    call("POST", PODS, pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": name}]))


def heard(call: Client, name: str, words: str) -> None:
    """The pod has an event that says so."""

    def look() -> bool:
        events = call("GET", "/api/v1/namespaces/t/events")["items"]
        mine = [each for each in events if each["involvedObject"]["name"] == name]
        return any(words in each["message"] for each in mine)

    until(look, SECONDS)


def condition(call: Client, name: str) -> dict[str, Any]:
    """What the driver says to the scheduler of the pod's device; empty while it says nothing."""
    for claim in call("GET", CLAIMS)["items"]:
        for device in claim.get("status", {}).get("devices", []):
            for found in device.get("conditions", []):
                if claim["metadata"]["name"].startswith(f"{name}-") and found["type"] == f"{DRIVER}/mode-ready":
                    return dict(found)
    return {}


def test_a_pod_runs_once_its_card_was_reset(call: Client, tree: Tree) -> None:
    with agent(tree, card(tree, 0)) as process:
        ask(call, "waits", card(tree, 0))
        heard(call, "waits", "waiting for binding conditions for device on node ampere")
        until(lambda: f"held by process {process} (sleep)" in condition(call, "waits").get("message", ""), SECONDS)
        assert "nodeName" not in call("GET", f"{PODS}/waits")["spec"]
    until(lambda: call("GET", f"{PODS}/waits")["status"]["phase"] == "Running", SECONDS)
    assert condition(call, "waits")["status"] == "True"
    assert [gpu.mig_current for gpu in State(tree.state).read().gpus] == [True] + [False] * 7


def test_a_pod_whose_card_can_not_be_reset_hears_why_and_stays(call: Client, tree: Tree) -> None:
    state = State(tree.state)
    state.inject(Injection(function=RESET, code=NvmlReturn.GPU_IS_LOST, times=0))
    ask(call, "fails", card(tree, 1))
    heard(call, "fails", 'running PreBind plugin "DynamicResources": device binding failed: claim=fails-gpu-')
    heard(call, "fails", "deallocation of ResourceClaim completed")
    heard(call, "fails", "0/1 nodes are available: 1 cannot allocate all claims.")
    assert [fault.met for fault in state.read().injections] == [3]
    assert "nodeName" not in call("GET", f"{PODS}/fails")["spec"]
    assert not card(tree, 1).mig_current
