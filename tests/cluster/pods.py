"""Small pods of the test image, and waiting for what becomes of them.

Pods here end at once when deleted: their main process is pid 1 of its container and would sit out SIGTERM.
"""

from collections.abc import Sequence
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.node import IMAGE
from tests.cluster.waiting import WaitedInVainError, wait_until

SLEEP = ("sleep", "2147483647")


def busybox_pod(name: str, command: Sequence[str] = SLEEP, **spec: Any) -> dict[str, Any]:
    """A Pod with one container `main`; `spec` adds fields to the PodSpec, as in `resourceClaims=[…]`."""
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": list(command)}
    fixed = {"hostNetwork": True, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**fixed, "containers": [container], **spec},
    }


def create_pod(cluster: Cluster, pod: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    """Create it as the fixture's admin."""
    made: dict[str, Any] = cluster.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    return made


def await_pod(
    cluster: Cluster, name: str, phase: str = "Running", *, namespace: str = "default", seconds: float = 60.0
) -> dict[str, Any]:
    """The Pod once it is in `phase`; else an error with its status and events, which say why it is not."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"

    def look() -> dict[str, Any] | None:
        pod: dict[str, Any] = cluster.call("GET", path)
        return pod if pod["status"].get("phase") == phase else None

    try:
        return wait_until(look, f"pod {namespace}/{name} in phase {phase}", seconds)
    except WaitedInVainError as error:
        error.add_note(cluster.kubectl("describe", "pod", name, f"--namespace={namespace}"))
        raise


def delete_pod(cluster: Cluster, name: str, namespace: str = "default", seconds: float = 60.0) -> None:
    """Delete it and wait until the kubelet has let go of it."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    cluster.call("DELETE", path)
    wait_until(lambda: cluster.raw("GET", path).status == 404, f"the end of pod {namespace}/{name}", seconds)
