"""What the real scheduler says about pods, as it says it: a watch over all pods, and waiting for a state of some.

It reads the condition PodScheduled (core/v1): bound, `Unschedulable`, or `SchedulerError` where the search ended in an
error (kubernetes/pkg/scheduler/schedule_one.go, handleSchedulingFailure).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dra.kube.client import KubeClient
from dra.kube.errors import KubeError
from dra.kube.requests import PODS, watch
from dra.kube.watch import WatchEvent, parse_event
from tests.cluster.started import Started

_SECONDS: Final = 2  # of a watch, and so until the thread ends


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod. `reason` is "" until the scheduler has spoken; `version` is the object's; a deleted one is `leaving`."""

    name: str
    node: str
    reason: str
    message: str
    version: str
    leaving: bool


type Pods = tuple[PodState, ...]


class PodWatch(Started):
    """Follows the pods of the cluster. A workload's pods are those of its name, or with its name and a dash before."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._changed = threading.Condition()
        self._pods: dict[str, PodState] = {}
        self._ending = False
        self._fault: KubeError | None = None
        self._thread = threading.Thread(target=self._follow, name="pod watch")

    def start(self) -> None:
        """Begin with the pods that there are."""
        self._thread.start()

    def stop(self) -> None:
        """End within two seconds."""
        self._ending = True
        self._thread.join()

    def of(self, workload: str) -> Pods:
        """Its pods as last seen."""
        with self._changed:
            return self._of(workload)

    def wait(self, workload: str, wanted: Callable[[Pods], bool], seconds: float) -> Pods:
        """Its pods as soon as they are as wanted, or as they are when the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: wanted(self._of(workload)) or self._fault, seconds)
            if self._fault is not None:
                raise self._fault
            return self._of(workload)

    def wait_for_other(self, workload: str, known: Pods, seconds: float) -> Pods:
        """Its pods as soon as they are not as known."""
        return self.wait(workload, lambda now: now != known, seconds)

    def _of(self, workload: str) -> Pods:
        return tuple(pod for name, pod in self._pods.items() if name == workload or name.startswith(f"{workload}-"))

    def _follow(self) -> None:
        version = ""
        try:
            while not self._ending:
                with self._client.stream(watch(PODS, resource_version=version, seconds=_SECONDS)) as lines:
                    for line in lines:
                        event = parse_event(line)
                        version = event.resource_version
                        self._take(event)
        except KubeError as error:
            with self._changed:
                self._fault = error
                self._changed.notify_all()

    def _take(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            return
        pod = json.loads(event.object)
        with self._changed:
            if event.type == "DELETED":
                self._pods.pop(pod["metadata"]["name"], None)
            else:
                self._pods[pod["metadata"]["name"]] = _state(pod)
            self._changed.notify_all()


def _state(pod: dict[str, Any]) -> PodState:
    conditions = pod["status"].get("conditions", ())
    said: dict[str, Any] = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    refused = said.get("status") == "False"
    return PodState(
        name=pod["metadata"]["name"],
        node=pod["spec"].get("nodeName", ""),
        reason=said.get("reason", "") if refused else "",
        message=said.get("message", "") if refused else "",
        version=pod["metadata"]["resourceVersion"],
        leaving="deletionTimestamp" in pod["metadata"],
    )
