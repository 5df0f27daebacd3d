"""Hollow nodes: Node and Lease without a kubelet, with slices if asked, for questions of fit over many nodes.

Pods that are bound to one stay Pending, which is enough for "was it allocated, and what". The controller manager of
`controlplane.py` waits a day before it calls them lost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.api import Api, ApiError
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until

CONNECTIONS = 8
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"

type Slices = Callable[[str], Sequence[Mapping[str, Any]]]

_CAPACITY = {"memory": "512Gi", "pods": "250", "ephemeral-storage": "1Ti"}


@dataclass(slots=True)
class HollowNodes:
    """Makes hollow nodes in one cluster and removes those it made."""

    cluster: Cluster
    _made: list[str] = field(default_factory=list)

    def make(
        self, names: Iterable[str], slices: Slices | None = None, *, cordoned: bool = False, cpu: str = "64"
    ) -> None:
        """Make these nodes, with the ResourceSlices that `slices` gives for each name, and wait until all are Ready.

        A cordoned node is shown everywhere and gets no pod. `cpu` is what pods can request there.
        """
        wanted = list(names)
        self._made += wanted

        def make_one(api: Api, name: str) -> None:
            api.call("POST", NODES, _node(name, cordoned=cordoned, cpu=cpu))
            api.call("POST", LEASES, _lease(name))
            for slice_ in slices(name) if slices else ():
                api.call("POST", SLICES, slice_)

        self._for_each(wanted, make_one)
        wait_until(lambda: self._schedulable(wanted), f"{len(wanted)} hollow nodes without the taint not-ready")

    def remove_all(self) -> None:
        """Delete every node that was made here, its Lease and all slices that name it."""
        names, self._made = self._made, []

        def remove_one(api: Api, name: str) -> None:
            _delete(api, f"{SLICES}?fieldSelector=spec.nodeName%3D{name}")
            _delete(api, f"{LEASES}/{name}")
            _delete(api, f"{NODES}/{name}")

        self._for_each(names, remove_one)

    def _for_each(self, names: Sequence[str], act: Callable[[Api, str], None]) -> None:
        # One connection a thread: the API server answers them side by side, and 200 nodes take seconds.
        def work(part: Sequence[str]) -> None:
            with self.cluster.api() as api:
                for name in part:
                    act(api, name)

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for done in [pool.submit(work, names[start::CONNECTIONS]) for start in range(CONNECTIONS)]:
                done.result()

    def _schedulable(self, names: Sequence[str]) -> bool:
        # Admission gives every new Node the taint, and the node controller takes it away on seeing the Ready condition.
        tainted = {
            node["metadata"]["name"]
            for node in self.cluster.call("GET", NODES)["items"]
            for taint in node["spec"].get("taints", ())
            if taint["key"] == "node.kubernetes.io/not-ready"
        }
        return tainted.isdisjoint(names)


def _delete(api: Api, path: str) -> None:
    try:
        api.call("DELETE", path)
    except ApiError as error:
        if error.status != 404:
            raise


def _node(name: str, *, cordoned: bool, cpu: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if cordoned:
        # What `kubectl cordon` leads to; the node controller would add the taint a moment later.
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        spec = {"unschedulable": True, "taints": [taint]}
    capacity = {"cpu": cpu, **_CAPACITY}
    ready = {"type": "Ready", "status": "True", "reason": "Hollow", "message": "a Node without a kubelet"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
    }


def _lease(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
    }
