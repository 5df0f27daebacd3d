"""A small cluster without a socket or thread: the simulator's API server and the controllers that a test asks for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from simulator import kinds
from simulator.api.access import MASTERS, User
from simulator.api.server import ApiServer
from simulator.claims import ClaimController
from simulator.hands import Hands
from simulator.http import read_schema
from simulator.kinds import Kind, of_object
from simulator.pods import HollowKubelets
from simulator.scheduler import Scheduler
from simulator.store import Object, Stamp, Store
from simulator.workloads import WorkloadController

SCHEMA = read_schema()
NAMESPACE = "t"
DRIVER = "x.example.com"


@dataclass
class Clock:
    """Time that a test moves; uids that count."""

    moment: datetime = datetime(2026, 11, 30, 7, tzinfo=UTC)
    uids: int = 0

    def stamp(self) -> Stamp:
        self.uids += 1
        return Stamp(self.moment.strftime("%Y-%m-%dT%H:%M:%SZ"), str(uuid.UUID(int=self.uids)))

    def pass_seconds(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def seconds(self) -> float:
        return self.moment.timestamp()


@dataclass
class Cluster:
    """Objects, the controller of claims and the scheduler."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        users = {"admin": User("admin", (MASTERS,))}
        self.server = ApiServer(Store(), SCHEMA, users, self.clock.stamp)
        self.hands = Hands(self.server)
        self.store = self.server.store
        self.claims = ClaimController(self.hands)
        self.scheduler = Scheduler(self.hands, self.clock.seconds)
        self.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})

    def add(self, *objects: Mapping[str, Any]) -> None:
        """Create them, through the API server's checks."""
        for each in objects:
            kind = of_object(each["apiVersion"], each["kind"])
            assert kind is not None, each["kind"]
            self.hands.create(kind, dict(each))

    def settle(self) -> None:
        """Let the controllers work until there is nothing to do."""
        before = -1
        while before != self.store.version:
            before = self.store.version
            self.claims.sync()
            self.scheduler.bind_ready()
            for pod in self.scheduler.due():
                self.scheduler.schedule(pod)

    def pod(self, name: str) -> Object:
        return self.store.get(kinds.POD, name, NAMESPACE)

    def claim_of(self, pod: str) -> Object:
        name = self.pod(pod)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        return self.store.get(kinds.RESOURCE_CLAIM, name, NAMESPACE)

    def change(self, kind: Kind, name: str, **fields: Any) -> None:
        """Replace fields of an object's spec."""
        namespace = NAMESPACE if kind.namespaced else ""
        found = self.store.get(kind, name, namespace)
        self.hands.replace(kind, found | {"spec": found["spec"] | fields})

    def finish(self, name: str) -> None:
        """The pod runs to its end."""
        self.hands.set_status(kinds.POD, self.pod(name), {"phase": "Succeeded"})

    def events(self, name: str) -> list[Object]:
        """What was told of an object, oldest first."""
        found = [each for each in self.store.all(kinds.EVENT) if each["involvedObject"]["name"] == name]
        return sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))

    def said(self, name: str) -> list[str]:
        return [f"{each['reason']}: {each['message']}" for each in self.events(name)]


class Living(Cluster):
    """With workloads too, and kubelets that start and end pods when their time has come."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workloads = WorkloadController(self.hands)
        self.kubelets = HollowKubelets(self.hands)

    def settle(self) -> None:
        before = -1
        while before != self.store.version:
            before = self.store.version
            self.workloads.sync()
            super().settle()
            self.kubelets.sync()

    def pass_seconds(self, seconds: float) -> None:
        """Let everyone act, time pass, and everyone act on it."""
        self.settle()
        self.clock.pass_seconds(seconds)
        self.settle()

    def pods(self) -> list[Object]:
        return self.store.all(kinds.POD, NAMESPACE)


def node(name: str, *, cpu: str = "64", **spec: Any) -> Object:
    allocatable = {"cpu": cpu, "memory": "512Gi", "pods": "250"}
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": allocatable, "allocatable": allocatable, "conditions": [ready]}
    labels = {"kubernetes.io/hostname": name}
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def slice_of(name: str, *devices: Mapping[str, Any]) -> Object:
    """A pool of one node; one device `d0` unless devices are given."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": list(devices) or [{"name": "d0"}]}
    meta = {"name": f"{name}-x"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": spec}


def device_class(name: str, **spec: Any) -> Object:
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    return kind | {"metadata": {"name": name}, "spec": {"selectors": selectors} | spec}


def template(name: str, device_class_name: str = "x", **exactly: Any) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class_name} | exactly}
    return template_of(name, request)


def template_of(name: str, *requests: Mapping[str, Any]) -> Object:
    meta = {"name": name, "namespace": NAMESPACE}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    return kind | {"metadata": meta, "spec": {"spec": {"devices": {"requests": list(requests)}}}}


def pod(name: str, template_name: str = "", *, requests: Mapping[str, str] | None = None, **spec: Any) -> Object:
    container = {"name": "c", "image": "x", "resources": {"requests": dict(requests or {})}}
    entries = [{"name": "gpu", "resourceClaimTemplateName": template_name}] if template_name else []
    claims = {"resourceClaims": entries} if entries else {}
    body = {"containers": [container]} | claims | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": body}


def small() -> Cluster:
    """Two nodes with one device each, and a class for both."""
    cluster = Cluster()
    cluster.add(node("n1"), node("n2"), slice_of("n1"), slice_of("n2"), device_class("x"))
    return cluster
