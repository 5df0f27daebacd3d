"""What kubelets write about pods: running, ready, ended, gone. Pure; hollow nodes and real ones share it.

A hollow kubelet starts no container: a pod runs some seconds after it was bound, and goes when it is deleted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from simulator import kinds
from simulator.hands import Hands, Told, is_going, is_over, with_condition
from simulator.store import Object

START_SECONDS: Final = 2.0
END_SECONDS: Final = 2.0


class HollowKubelets:
    """The kubelets of all nodes but those named, which have a real driver."""

    def __init__(self, hands: Hands, real: frozenset[str] = frozenset()) -> None:
        self._hands = hands
        self._real = real

    def sync(self) -> None:
        """Move each bound pod one step on if its time has come."""
        for pod in self._hands.store.all(kinds.POD):
            node = pod["spec"].get("nodeName")
            if node and node not in self._real:
                self._step(pod)

    def _step(self, pod: Object) -> None:
        now = self._hands.now
        if is_going(pod):
            if is_over(pod) or _seconds(pod["metadata"]["deletionTimestamp"], now) >= END_SECONDS:
                self._hands.delete(pod, at_once=True)
        elif not is_over(pod) and "startTime" not in pod["status"]:
            accept(self._hands, pod)
        elif pod["status"]["phase"] == "Pending" and _seconds(pod["status"]["startTime"], now) >= START_SECONDS:
            run(self._hands, pod)


def accept(hands: Hands, pod: Object) -> Object:
    """The kubelet took notice: the pod is started on."""
    return hands.set_status(kinds.POD, pod, {"startTime": hands.now})


def run(hands: Hands, pod: Object) -> None:
    """All containers run and are ready."""
    now = hands.now
    conditions: list[Object] = pod["status"].get("conditions", [])
    for name in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"):
        condition = {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        conditions = with_condition(conditions, condition)
    statuses = [_container_status(each, now) for each in pod["spec"]["containers"]]
    fields = {"phase": "Running", "conditions": conditions, "containerStatuses": statuses}
    running = hands.set_status(kinds.POD, pod, fields)
    for container in pod["spec"]["containers"]:
        started = Told("kubelet", "Started", f"Started container {container['name']}", warning=False)
        hands.tell(running, started)


def _container_status(container: Object, now: str) -> Object:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }


def _seconds(since: str, now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
