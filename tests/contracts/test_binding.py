"""What both schedulers promise of devices that are made ready after they were allocated (KEP-5007).

The real one looks at the conditions every 5 s. It gives up after 600 s; another, told to do so after 15, runs beside.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.hollow import HollowNodes
from tests.cluster.waiting import wait_until
from tests.contracts.conftest import ClusterDoor, Door, SimulatorDoor
from tests.contracts.test_pods import make_account, pod, pods
from tests.simulator import clusters

DRA = "/apis/resource.k8s.io/v1"
DRIVER = "binding.example.com"
READY, FAILED = f"{DRIVER}/ready", f"{DRIVER}/failed"
NODES = ("binding-1", "binding-2")
LATE = {"name": "d0", "bindsToNode": True, "bindingConditions": [READY], "bindingFailureConditions": [FAILED]}
TAINTED = LATE | {"taints": [{"key": f"{DRIVER}/broken", "effect": "NoSchedule"}]}
SECONDS = 90.0  # its poll of 5 s, its back-off before it tries again, and a slow machine


class Scheduling(Protocol):
    """An API server with its scheduler, of that name, and two nodes that run nothing."""

    door: Door
    scheduler: str

    def pass_timeout(self) -> None:
        """Let the time go by in which devices have to be ready."""

    def settle[T](self, look: Callable[[], T | None], what: str) -> T:
        """What `look` finds, once the scheduler did its part; fail where it finds nothing."""


@dataclass(slots=True)
class Simulated:
    """The simulator's, without a socket or thread."""

    cluster: clusters.Cluster
    door: SimulatorDoor
    scheduler: str = "default-scheduler"

    def pass_timeout(self) -> None:
        self.cluster.settle()
        self.cluster.clock.pass_seconds(600)

    def settle[T](self, look: Callable[[], T | None], what: str) -> T:
        self.cluster.settle()
        found = look()
        assert found, what
        return found


@dataclass(slots=True)
class Real:
    """A real one on hollow nodes."""

    door: ClusterDoor
    scheduler: str = "default-scheduler"

    def pass_timeout(self) -> None:
        """Whoever waits for what comes after it waits long enough."""

    def settle[T](self, look: Callable[[], T | None], what: str) -> T:
        return wait_until(look, what, SECONDS)


@pytest.fixture
def simulated() -> Simulated:
    made = clusters.Cluster()
    made.add(*(clusters.node(name) for name in NODES))
    return Simulated(made, SimulatorDoor(made.server, namespace=clusters.NAMESPACE))


@pytest.fixture
def real(cluster_door: ClusterDoor, hollow_nodes: HollowNodes, cluster: Cluster) -> Iterator[Real]:
    hollow_nodes.make(NODES)
    yield Real(cluster_door)
    cluster.kubectl("delete", "pods", "--all", "-n", cluster_door.namespace, "--force", "--grace-period=0")
    cluster_door.send("DELETE", f"{DRA}/deviceclasses/late")


@pytest.fixture
def impatient(real: Real, cluster: Cluster) -> Iterator[Real]:
    """A scheduler beside the cluster's own that gives up early."""
    arguments = [{"name": "DynamicResources", "args": {"bindingTimeout": "15s"}}]
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig("system:kube-scheduler"))},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "impatient", "pluginConfig": arguments}],
    }  # fmt: skip
    config = cluster.folder / "impatient.json"
    config.write_text(json.dumps(content))
    flags = [f"--config={config}", "--secure-port=0"]
    program = cluster.processes.start("kube-scheduler-impatient", [cluster.programs / "kube-scheduler", *flags])
    yield Real(real.door, "impatient")
    program.stop(grace=2.0)


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.cluster)])
def waits(request: pytest.FixtureRequest) -> Scheduling:
    """A pod `p` that waits for the device of the first or the second node."""
    return started(request.getfixturevalue(request.param))


@pytest.fixture(params=["simulated", pytest.param("impatient", marks=pytest.mark.cluster)])
def waits_in_vain(request: pytest.FixtureRequest) -> Scheduling:
    """The same, with a scheduler that a test can wait for."""
    return started(request.getfixturevalue(request.param))


def started(made: Scheduling) -> Scheduling:
    base = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": "late"}}
    for name in NODES:
        made.door.send("POST", f"{DRA}/resourceslices", slice_of(name, LATE))
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    late_class = base | {"kind": "DeviceClass", "spec": {"selectors": selectors}}
    made.door.send("POST", f"{DRA}/deviceclasses", late_class)
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "late"}}]}
    template = base | {"kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": devices}}}
    made.door.send("POST", f"{DRA}/namespaces/{made.door.namespace}/resourceclaimtemplates", template)
    make_account(made.door)
    entry = {"name": "gpu", "resourceClaimTemplateName": "late"}
    body = pod(schedulerName=made.scheduler, resourceClaims=[entry])
    assert made.door.send("POST", pods(made.door), body).code == 201
    return made


def slice_of(node: str, device: dict[str, Any]) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [device]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def present(waits: Scheduling) -> dict[str, Any]:
    """The pod."""
    found: dict[str, Any] = waits.door.send("GET", f"{pods(waits.door)}/p").body
    return found


def claim_of(waits: Scheduling) -> dict[str, Any]:
    (found,) = waits.door.send("GET", f"{DRA}/namespaces/{waits.door.namespace}/resourceclaims").body["items"]
    assert isinstance(found, dict)
    return found


def heard(waits: Scheduling, reason: str, pattern: str) -> re.Match[str]:
    """An event of the pod that reads so."""

    def look() -> re.Match[str] | None:
        events = waits.door.send("GET", f"/api/v1/namespaces/{waits.door.namespace}/events").body["items"]
        texts = [each["message"] for each in events if each["reason"] == reason]
        return next((found for text in texts if (found := re.fullmatch(pattern, text))), None)

    return waits.settle(look, f"{reason}: {pattern}")


def pending_on(waits: Scheduling, nodes: str) -> str:
    """The node that the scheduler waits for."""
    words = f"waiting for binding conditions for device on node ({nodes})"
    return heard(waits, "BindingConditionsPending", words)[1]


def taint(waits: Scheduling, node: str) -> None:
    """Keep new claims off the node's device."""
    merge = {"Content-Type": "application/merge-patch+json"}
    tainted = {"spec": {"devices": [TAINTED]}}
    assert waits.door.send("PATCH", f"{DRA}/resourceslices/{node}", tainted, merge).code == 200


def say(waits: Scheduling, **conditions: str) -> None:
    """What a driver writes into the claim's status, with a field manager of its own."""
    claim = claim_of(waits)
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    said = [
        {
            "type": f"{DRIVER}/{name}", "status": status, "reason": "Said", "message": 'as "told"',
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
        for name, status in conditions.items()
    ]  # fmt: skip
    device = {name: given[name] for name in ("driver", "pool", "device")} | {"conditions": said}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    body = kind | {"metadata": {"name": claim["metadata"]["name"]}, "status": {"devices": [device]}}
    path = f"{DRA}/namespaces/{waits.door.namespace}/resourceclaims/{claim['metadata']['name']}/status"
    headers = {"Content-Type": "application/apply-patch+yaml"}
    reply = waits.door.send("PATCH", f"{path}?fieldManager={DRIVER}/mode&force=true", body, headers)
    assert reply.code == 200, reply.body


def test_a_pod_is_bound_once_its_device_is_ready(waits: Scheduling) -> None:
    node = pending_on(waits, "|".join(NODES))
    claim = claim_of(waits)
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    assert (given["pool"], given["device"]) == (node, "d0")
    assert (given["bindingConditions"], given["bindingFailureConditions"]) == ([READY], [FAILED])
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["p"]
    assert (present(waits)["status"].get("nominatedNodeName"), present(waits)["spec"].get("nodeName")) == (node, None)

    say(waits, ready="False")
    say(waits, ready="True")
    waits.settle(lambda: present(waits)["spec"].get("nodeName") == node, f"the pod on {node}")
    assert "nominatedNodeName" not in present(waits)["status"]


def test_a_device_that_fails_is_given_up_for_another(waits: Scheduling) -> None:
    node = pending_on(waits, "|".join(NODES))
    other = next(name for name in NODES if name != node)
    taint(waits, node)
    name = claim_of(waits)["metadata"]["name"]
    say(waits, failed="True", ready="False")

    why = rf'device binding failed: claim={name}, reason=Said, message="as \"told\""'
    heard(waits, "FailedScheduling", re.escape(f'running PreBind plugin "DynamicResources": {why}'))
    preemption = r"preemption: 0/\1 nodes are available: .*"
    freed = f"deallocation of ResourceClaim completed, {preemption}"
    heard(
        waits, "FailedScheduling", rf"0/(\d+) nodes are available: .*resourceclaim not available on the node.*{freed}"
    )
    assert pending_on(waits, other) == other
    assert "devices" not in claim_of(waits)["status"]

    say(waits, ready="True")
    waits.settle(lambda: present(waits)["spec"].get("nodeName") == other, f"the pod on {other}")


def test_a_device_that_is_not_ready_in_time_is_given_up(waits_in_vain: Scheduling) -> None:
    """Both times end together: that of the pod's wait, which is told where it is seen first, and that of the claim."""
    node = pending_on(waits_in_vain, "|".join(NODES))
    uid = claim_of(waits_in_vain)["metadata"]["uid"]
    taint(waits_in_vain, node)
    waits_in_vain.pass_timeout()
    name = claim_of(waits_in_vain)["metadata"]["name"]
    why = f"device binding timeout: (context deadline exceeded|claim={name})"
    heard(waits_in_vain, "FailedScheduling", f'running PreBind plugin "DynamicResources": {why}')
    heard(
        waits_in_vain, "FailedScheduling", r"0/\d+ nodes are available: .* deallocation of ResourceClaim completed, .*"
    )
    other = next(name for name in NODES if name != node)
    assert pending_on(waits_in_vain, other) == other
    assert claim_of(waits_in_vain)["metadata"]["uid"] == uid
