"""A whole cluster in one process: API server, controllers, scheduler, kubelets, actors, and where they are kept apart.

Builds everything from a scenario; `start` opens the address and lets it live, `stop` ends threads and node drivers.
Decides nothing itself.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import uvicorn
import yaml

from dra.errors import DraError
from dra.objects import GPUClass, OwnerReference, decode, to_json
from simulator import kinds
from simulator.actors import Actors
from simulator.api.access import MASTERS, User, account
from simulator.api.server import ApiServer
from simulator.claims import ClaimController
from simulator.clock import Clock
from simulator.drivers import NodeDriver
from simulator.hands import Hands
from simulator.http import Application, for_kubectl, kubeconfig, read_schema, stamp
from simulator.kinds import of_object
from simulator.knobs import Knobs
from simulator.kubelet import Kubelet
from simulator.machines import facts_of_machine, slices_for
from simulator.pods import HollowKubelets
from simulator.scenario import CLUSTERS, NodeGroup, Scenario, node_object, pool_slice
from simulator.scheduler import Scheduler
from simulator.store import Change, Object, Store
from simulator.workloads import WorkloadController

SYSTEM: Final = "portico-system"
ROLES: Final = CLUSTERS.parent / "roles.yaml"
HOST: Final = "127.0.0.1"
ACCOUNTS: Final = ("portal", "web", "worker", "driver")
KUBECTL: Final = "kubectl"
_ADMIN: Final = "admin"
_MOST_COMPLAINTS: Final = 100  # of actors, kept for whoever shows them
_PAUSE: Final = 0.02  # seconds in which changes gather before controllers look
_TURN: Final = 0.5  # seconds after which they look without one
_START_SECONDS: Final = 60.0  # for a driver's first slices
_EVENT_HOURS: Final = 1  # kube-apiserver --event-ttl


class WorldError(DraError):
    """The cluster can't start; the text says why, with a log's end."""


@dataclass(frozen=True, slots=True)
class Controllers:
    """Whoever changes objects by itself. `turn` is one look of all of them, each step under the lock."""

    lock: threading.RLock
    syncs: tuple[Callable[[], object], ...]
    scheduler: Scheduler

    def turn(self) -> None:
        """Look once."""
        for sync in self.syncs:
            with self.lock:
                sync()
        with self.lock:
            self.scheduler.bind_ready()
            due = self.scheduler.due()
        for pod in due:
            with self.lock:
                self.scheduler.schedule(pod)


class World:
    """One cluster under `folder`, which must be short: unix sockets lie in it (104 bytes on macOS)."""

    def __init__(self, scenario: Scenario, objects: Sequence[Object], folder: Path, *, seed: int = 1) -> None:
        self._scenario, self._folder = scenario, folder
        self._tokens = {name: secrets.token_urlsafe(24) for name in (_ADMIN, *ACCOUNTS)}
        self._server = ApiServer(Store(), read_schema(), self._users(), stamp)
        self._lock = threading.RLock()
        self._app = Application(self._server, self._lock)
        self._hands = Hands(self._server)
        self._wake, self._ending = threading.Event(), False
        self.clock = Clock()
        self.broken = threading.Event()
        self.complaints: deque[str] = deque(maxlen=_MOST_COMPLAINTS)
        self._web = uvicorn.Server(self._web_config())
        self._threads: list[threading.Thread] = []
        self._drivers: list[NodeDriver] = []
        self._kubelets: list[Kubelet] = []
        self._fill(objects)
        self._controllers = self._build_controllers(seed)
        self._server.store.listen(self._hear)
        self._listener = _listener()

    @property
    def store(self) -> Store:
        """The objects; to be read under nobody else's writes."""
        return self._server.store

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"http://{HOST}:{self._listener.getsockname()[1]}"

    def kubeconfig(self, name: str = _ADMIN) -> Path:
        """The file for the administrator, for kubectl as them, or for one of `ACCOUNTS`."""
        return self._folder / f"{name}.kubeconfig"

    def start(self) -> None:
        """Open the address, start drivers, then let everything live; WorldError where a driver publishes nothing."""
        for name, token in self._tokens.items():
            self._write_kubeconfig(name, kubeconfig(self.url, name, token))
        self._write_kubeconfig(KUBECTL, for_kubectl(self.url, self._tokens[_ADMIN]))
        self._run("api", lambda: self._web.run(sockets=[self._listener]))
        for group in self._scenario.groups:
            for name in group.names if group.real_driver else ():
                self._start_node(group, name)
        self._await_drivers()
        for kubelet in self._kubelets:
            kubelet.start()
        self._run("controllers", self._live)

    def stop(self) -> None:
        """End everything, kubelets and drivers first, so that drivers still reach the API server."""
        for kubelet in self._kubelets:
            kubelet.stop()
        for driver in self._drivers:
            driver.stop()
        self._ending = True
        self._web.should_exit = True
        self._wake.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def fault(self) -> str:
        """Why the world can't go on; empty while it can."""
        if self.broken.is_set():
            return "a controller failed; its error stands above"
        return next((log for driver in self._drivers if (log := driver.ended())), "")

    def _run(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name)
        self._threads.append(thread)
        thread.start()

    def _write_kubeconfig(self, name: str, text: str) -> None:
        self.kubeconfig(name).touch(0o600)
        self.kubeconfig(name).write_text(text)

    def _users(self) -> Mapping[str, User]:
        users = {self._tokens[_ADMIN]: User(_ADMIN, (MASTERS,))}
        return users | {self._tokens[name]: account(SYSTEM, f"portico-{name}") for name in ACCOUNTS}

    def _web_config(self) -> uvicorn.Config:
        app = Knobs(self._app, self._server, self.clock)
        return uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)

    def _fill(self, objects: Sequence[Object]) -> None:
        """Namespaces, roles, nodes with slices, and the scenario's own objects."""
        objects = [*yaml.safe_load_all(ROLES.read_text()), *objects]
        spaces = {each["metadata"]["namespace"] for each in objects if "namespace" in each["metadata"]}
        for name in sorted({"default", "kube-system", SYSTEM} | spaces):
            self._hands.create(kinds.NAMESPACE, {"metadata": {"name": name}})
        for each in objects:
            self._create(_with_portal(each) if each["kind"].endswith("Binding") else each)
        for group in self._scenario.groups:
            self._add_nodes(group)
        for pool in self._scenario.pools:
            self._create(pool_slice(pool, to_json(self._owner(pool.node))))

    def _create(self, given: Object) -> None:
        kind = of_object(given["apiVersion"], given["kind"])
        if kind is None:
            raise WorldError(f"the simulator serves no {given['kind']} of {given['apiVersion']}")
        made = self._hands.create(kind, given)
        if kind == kinds.GPU_CLASS and (owned := decode(msgspec.json.encode(made), GPUClass).generated):
            self._hands.create(kinds.DEVICE_CLASS, to_json(owned))  # as the editor of classes does

    def _add_nodes(self, group: NodeGroup) -> None:
        facts = facts_of_machine(group.machine) if group.machine and not group.real_driver else ()
        for name in group.names:
            self._hands.create(kinds.NODE, node_object(group, name))
            slices = slices_for(self._scenario.driver_name, self._owner(name), facts) if facts else ()
            for slice_ in slices[: len(slices) - group.withheld]:
                self._hands.create(kinds.RESOURCE_SLICE, to_json(slice_))

    def _owner(self, node: str) -> OwnerReference:
        uid = self._server.store.get(kinds.NODE, node)["metadata"]["uid"]
        return OwnerReference(api_version="v1", kind="Node", name=node, uid=uid, controller=True)

    def _build_controllers(self, seed: int) -> Controllers:
        hands = self._hands
        actors = Actors(hands, self._scenario.actors, seed)
        syncs = (
            lambda: self._complain(actors.sync(self._seconds())),
            WorkloadController(hands).sync,
            ClaimController(hands).sync,
            HollowKubelets(hands, self._real_nodes()).sync,
            self._forget_events,
        )
        return Controllers(self._lock, syncs, Scheduler(hands, self._seconds))

    def _seconds(self) -> float:
        return self.clock.seconds(time.monotonic())

    def _start_node(self, group: NodeGroup, name: str) -> None:
        folder = self._folder / str(len(self._drivers) + 1)
        driver = NodeDriver(folder, name, self._scenario.driver_name, self.kubeconfig("driver"))
        self._drivers.append(driver)
        driver.start(group.machine)
        kubelet = Kubelet(self._hands, self._lock, name, driver.registry)
        self._kubelets.append(kubelet)

    def _await_drivers(self) -> None:
        """Pods that come before would all go to the nodes that have their slices from the beginning."""
        end = time.monotonic() + _START_SECONDS
        while not all(self._is_published(name) for name in self._real_nodes()):
            if (why := self.fault()) or time.monotonic() > end:
                raise WorldError(f"a node driver published nothing in {_START_SECONDS:.0f} s: {why or 'see its log'}")
            time.sleep(_PAUSE)

    def _is_published(self, node: str) -> bool:
        with self._lock:
            slices = [each["spec"] for each in self._server.store.all(kinds.RESOURCE_SLICE)]
        mine = [each for each in slices if each.get("nodeName") == node]
        return bool(mine) and len(mine) == mine[0]["pool"]["resourceSliceCount"]

    def _real_nodes(self) -> frozenset[str]:
        return frozenset(name for group in self._scenario.groups if group.real_driver for name in group.names)

    def _hear(self, _: Change) -> None:
        self._wake.set()

    def _live(self) -> None:
        try:
            while not self._ending:
                self._wake.clear()
                self._controllers.turn()
                for kubelet in self._kubelets:
                    kubelet.wake()
                self._wake.wait(_TURN)
                time.sleep(_PAUSE)
        finally:
            if not self._ending:
                self.broken.set()

    def _complain(self, refusals: Sequence[str]) -> None:
        self.complaints.extend(refusals)

    def _forget_events(self) -> None:
        oldest = datetime.now(UTC) - timedelta(hours=_EVENT_HOURS)
        self._hands.forget_events(oldest.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _with_portal(binding: Object) -> Object:
    """The binding of the web's or worker's account, for the account of a portal that is both in one process too."""
    subjects = binding.get("subjects", ())
    names = {each["name"] for each in subjects}
    if not names & {"portico-web", "portico-worker"}:
        return binding
    portal = {"kind": "ServiceAccount", "namespace": SYSTEM, "name": "portico-portal"}
    return binding | {"subjects": [*subjects, portal]}


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind((HOST, 0))
    listener.listen(128)
    return listener
