"""A living cluster of one real node and one hollow: the production driver prepares what the scheduler gives."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from scripts.simulator_roles import rendered
from simulator.scenario import Actor, NodeGroup, Scenario
from simulator.silicon.state import State
from simulator.silicon.tree import Tree
from simulator.world import ROLES, World

pytestmark = pytest.mark.programs  # starts the node driver, renders the chart by helm

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: slice}
spec:
  selectors:
  - cel:
      expression: |
        device.driver == "gpu.portico.dev" && device.attributes["gpu.portico.dev"].deviceType == "MIG" &&
        device.attributes["gpu.portico.dev"].migProfile == "1g.10gb"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: slice, namespace: t}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: slice}}]}}}
"""
ACTOR = Actor(name="late", namespace="t", template="slice", at_start=0, most=1, every=40, lasts=(10_000, 10_000))
PODS = "/api/v1/namespaces/t/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/t/resourceclaims"


class Client:
    """A person's requests, as its kubeconfig says."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        self.url = config["clusters"][0]["cluster"]["server"]
        self.token = config["users"][0]["user"]["token"]

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory(dir="/tmp", prefix="portico-world-") as made:
        yield Path(made)


@pytest.fixture(scope="module")
def world(folder: Path) -> Iterator[World]:
    groups = (NodeGroup(names=("real",), machine="h100x8", real_driver=True), NodeGroup(names=("hollow",)))
    scenario = Scenario(title="small", groups=groups, actors=(ACTOR,))
    made = World(scenario, list(yaml.safe_load_all(CLASS)), folder)
    made.clock.set_rate(0, time.monotonic())
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def call(world: World) -> Client:
    return Client(world.kubeconfig())


def until[T](look: Callable[[], T], seconds: float = 30) -> T:
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def pod(name: str, **spec: Any) -> dict[str, Any]:
    body = {"containers": [{"name": "c", "image": "x"}]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def phase(call: Client, name: str) -> str:
    return str(call("GET", f"{PODS}/{name}")["status"]["phase"])


def test_a_pod_runs_on_a_slice_that_the_driver_cut_and_leaves_nothing(folder: Path, call: Client) -> None:
    state = State(Tree(folder / "1" / "m").state)
    claims = [{"name": "gpu", "resourceClaimTemplateName": "slice"}]
    call("POST", PODS, pod("sliced", resourceClaims=claims))
    until(lambda: phase(call, "sliced") == "Running")
    assert call("GET", f"{PODS}/sliced")["spec"]["nodeName"] == "real"
    (claim,) = call("GET", CLAIMS)["items"]
    (device,) = claim["status"]["allocation"]["devices"]["results"]
    assert sum(len(gpu.gpu_instances) for gpu in state.read().gpus) == 1
    assert list((folder / "1" / "cdi").iterdir()) != []
    (told,) = until(lambda: call("GET", CLAIMS)["items"][0]["status"].get("devices", []))
    assert (told["driver"], told["device"]) == ("gpu.portico.dev", device["device"])
    call("DELETE", f"{PODS}/sliced")
    until(lambda: not call("GET", PODS)["items"])
    assert sum(len(gpu.gpu_instances) for gpu in state.read().gpus) == 0
    until(lambda: not call("GET", CLAIMS)["items"])


def test_a_pod_without_claims_runs_on_the_hollow_node_and_goes(call: Client) -> None:
    call("POST", PODS, pod("plain", nodeSelector={"kubernetes.io/hostname": "hollow"}))
    until(lambda: phase(call, "plain") == "Running")
    call("DELETE", f"{PODS}/plain")
    until(lambda: not call("GET", PODS)["items"])


def test_what_the_driver_refuses_is_told_and_tried_again(call: Client) -> None:
    parameters = {"apiVersion": "resource.gpu.portico.dev/v1alpha1", "kind": "GpuConfig", "nonsense": True}
    config = [{"opaque": {"driver": "gpu.portico.dev", "parameters": parameters}}]
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "slice"}}], "config": config}
    meta = {"name": "wrong"}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": devices},
    }
    call("POST", CLAIMS, claim)
    call("POST", PODS, pod("wrong", resourceClaims=[{"name": "gpu", "resourceClaimName": "wrong"}]))

    def refused() -> list[str]:  # of this pod: one that came before the driver was registered has such an event too
        events = call("GET", "/api/v1/namespaces/t/events")["items"]
        mine = [each for each in events if each["involvedObject"]["name"] == "wrong"]
        return [each["message"] for each in mine if each["reason"] == "FailedPrepareDynamicResources"]

    message, *again = until(refused)
    assert set(again) <= {message}
    start = "Failed to prepare dynamic resources: prepare dynamic resources: "
    assert message.startswith(f"{start}NodePrepareResources failed for ResourceClaim wrong: ")
    assert "nonsense" in message
    assert phase(call, "wrong") == "Pending"
    call("DELETE", f"{PODS}/wrong")
    until(lambda: not call("GET", PODS)["items"])
    call("DELETE", f"{CLAIMS}/wrong")
    until(lambda: not call("GET", CLAIMS)["items"])


def test_the_clock_stands_still_until_an_administrator_lets_it_go(world: World, call: Client) -> None:
    assert call("GET", "/simulator/clock")["rate"] == 0
    assert call("GET", PODS)["items"] == []
    assert call("PUT", "/simulator/clock", {"rate": 10})["rate"] == 10
    until(lambda: [each["metadata"]["name"] for each in call("GET", PODS)["items"]] == ["late-1"])
    with pytest.raises(urllib.error.HTTPError, match="422"):
        call("PUT", "/simulator/clock", {"rate": 3})
    with pytest.raises(urllib.error.HTTPError, match="422"):
        call("PUT", "/simulator/clock", "rate")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        Client(world.kubeconfig("worker"))("GET", "/simulator/clock")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        call("DELETE", "/simulator/clock")


def test_kubeconfigs_are_their_owners_alone(world: World) -> None:
    assert [world.kubeconfig(name).stat().st_mode & 0o777 for name in ("admin", "web", "worker", "driver")] == [
        0o600
    ] * 4


def test_the_roles_are_the_charts() -> None:
    """`python scripts/simulator_roles.py` writes the file anew."""
    assert ROLES.read_text() == rendered()
