"""Ask the cluster about pods and resource claims of a namespace, and change them, as the words of a journey."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until

CLAIMS = "/apis/resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Workloads:
    """One namespace."""

    cluster: Cluster
    namespace: str

    def pods(self, phase: str = "") -> list[dict[str, Any]]:
        """Pods that are not going away, by name; in that phase, if one is given."""
        items = self._list("/api/v1", "pods")
        return [pod for pod in items if _stays(pod) and phase in ("", pod["status"].get("phase"))]

    def claims(self) -> list[dict[str, Any]]:
        """Resource claims that are not going away, by name."""
        return [claim for claim in self._list(CLAIMS, "resourceclaims") if _stays(claim)]

    def templates(self) -> list[dict[str, Any]]:
        """ResourceClaimTemplates, by name."""
        return self._list(CLAIMS, "resourceclaimtemplates")

    def results(self, pod: str) -> list[dict[str, Any]]:
        """What the scheduler allocated for a pod, by template or by extended resource."""
        return [result for name in self._claim_names(pod) for result in self._allocated(name)]

    def claim_of(self, pod: str) -> dict[str, Any]:
        """The one resource claim of a pod."""
        (name,) = self._claim_names(pod)
        claim: dict[str, Any] = self._get(CLAIMS, "resourceclaims", name)
        return claim

    def await_running(self, count: int, seconds: float = 90.0, selector: str = "") -> list[dict[str, Any]]:
        """Wait until so many pods run, and give them."""

        def look() -> list[dict[str, Any]] | None:
            running = [pod for pod in self.pods("Running") if pod["metadata"]["name"].startswith(selector)]
            return running if len(running) == count else None

        return wait_until(look, f"{count} running pods {selector}* in {self.namespace}", seconds)

    def await_gone(self, kind: str, name: str, seconds: float = 60.0) -> None:
        """Wait until there is no such object any more."""
        path = f"{_root(kind)}/namespaces/{self.namespace}/{kind}/{name}"
        wait_until(lambda: self.cluster.raw("GET", path).status == 404, f"the end of {kind} {name}", seconds)

    def delete(self, kind: str, name: str) -> None:
        """Delete and wait until it is gone."""
        self.cluster.kubectl("delete", kind, name, f"--namespace={self.namespace}", "--wait=false")
        self.await_gone(kind, name)

    def clear(self) -> None:
        """Delete every workload, and wait until no pod is left, and no resource claim that pods brought with them."""
        kinds = "deployments,jobs,pods,resourceclaimtemplates"
        self.cluster.kubectl("delete", kinds, "--all", f"--namespace={self.namespace}", "--wait=false")
        wait_until(lambda: not self._list("/api/v1", "pods"), f"the end of all pods in {self.namespace}", 90)
        wait_until(lambda: not self._list(CLAIMS, "resourceclaims"), f"the end of all claims in {self.namespace}", 60)

    def events(self, pod: str) -> list[str]:
        """Reasons and messages of a pod's events."""
        found = self._list("/api/v1", f"events?fieldSelector=involvedObject.name%3D{pod}")
        return [f"{event.get('reason')}: {event.get('message')}" for event in found]

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        """Merge a change into an object."""
        self.cluster.kubectl(
            "patch", kind, name, f"--namespace={self.namespace}", "--type=merge", "-p", json.dumps(change)
        )

    def _claim_names(self, pod: str) -> list[str]:
        status = self._get("/api/v1", "pods", pod)["status"]
        names = [each["resourceClaimName"] for each in status.get("resourceClaimStatuses", ())]
        extended = status.get("extendedResourceClaimStatus")
        return [*names, extended["resourceClaimName"]] if extended else names

    def _allocated(self, name: str) -> list[dict[str, Any]]:
        status = self._get(CLAIMS, "resourceclaims", name).get("status", {})
        results: list[dict[str, Any]] = status.get("allocation", {}).get("devices", {}).get("results", [])
        return results

    def _get(self, root: str, kind: str, name: str) -> Any:
        return self.cluster.call("GET", f"{root}/namespaces/{self.namespace}/{kind}/{name}")

    def _list(self, root: str, kind: str) -> list[dict[str, Any]]:
        items = self.cluster.call("GET", f"{root}/namespaces/{self.namespace}/{kind}")["items"]
        return sorted(items, key=lambda item: str(item["metadata"]["name"]))


def _stays(item: dict[str, Any]) -> bool:
    return "deletionTimestamp" not in item["metadata"]


def _root(kind: str) -> str:
    return CLAIMS if kind.startswith("resourceclaim") else "/api/v1"
