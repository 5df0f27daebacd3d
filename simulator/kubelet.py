"""The kubelet of a node whose driver is real: it registers plugins and has claims prepared over their unix sockets.

As kubernetes/pkg/kubelet/{pluginmanager,cm/dra} do: a socket in the registry is asked who it is; before a pod runs its
claims are prepared, when no pod needs them they are unprepared, and only then a deleted pod goes. No container runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from nodedriver.pb.dra.v1 import api_pb2, api_pb2_grpc
from nodedriver.pb.pluginregistration.v1 import api_pb2 as registration_pb2
from nodedriver.pb.pluginregistration.v1 import api_pb2_grpc as registration_grpc
from simulator import kinds
from simulator.claims import claims_of, is_reserved
from simulator.hands import Hands, Told, is_going, is_over
from simulator.pods import accept, run
from simulator.store import Object

_CALL_SECONDS: Final = 45.0  # of a call to a plugin (kubelet cm/dra/plugin)
_RETRY_SECONDS: Final = 5.0
_SERVICE: Final = "v1.DRAPlugin"


class PrepareError(Exception):
    """A pod's claims can't be prepared; the text is what the kubelet would tell of it."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A claim that was prepared: how drivers know it, and which they are."""

    claim: Any
    drivers: tuple[str, ...]


class Kubelet:
    """One node's kubelet, a thread between `start` and `stop`. The lock is held around each look and write."""

    def __init__(self, hands: Hands, lock: threading.RLock, node: str, registry: Path) -> None:
        self._hands, self._lock = hands, lock
        self._node, self._registry = node, registry
        self._endpoints: dict[str, str] = {}
        self._known: dict[Path, int] = {}  # registration sockets that were asked, by inode
        self._held: dict[str, _Held] = {}
        self._not_before: dict[str, float] = {}  # uid of a pod or claim to when it is tried again
        self._wake = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name=f"kubelet-{node}")

    def start(self) -> None:
        """Begin to look for plugins and pods."""
        self._thread.start()

    def stop(self) -> None:
        """End; what runs is let finish."""
        self._ending = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()

    def wake(self) -> None:
        """Something changed."""
        self._wake.set()

    def _serve(self) -> None:
        while not self._ending:
            self._wake.clear()
            self._register()
            for pod in self._starting():
                self._start(pod)
            self._release()
            self._wake.wait(1.0)

    def _register(self) -> None:
        """Ask each new registration socket who it is, and forget the drivers whose socket went."""
        sockets = {path: path.stat().st_ino for path in self._registry.glob("*-reg.sock")}
        for path in self._known.keys() - sockets.keys():
            del self._known[path]
        for path, inode in sockets.items():
            if self._known.get(path) != inode and (info := _introduced(path)) is not None:
                self._known[path] = inode
                self._endpoints[info.name] = info.endpoint

    def _pods(self) -> list[Object]:
        return [each for each in self._hands.store.all(kinds.POD) if each["spec"].get("nodeName") == self._node]

    def _starting(self) -> list[Object]:
        """Pods whose claims are to be prepared now."""
        with self._lock:
            pods = [each for each in self._pods() if not is_going(each) and each["status"]["phase"] == "Pending"]
            return [each for each in pods if self._is_time(each["metadata"]["uid"])]

    def _start(self, pod: Object) -> None:
        """Prepare its claims, outside of the lock since drivers read them meanwhile, and let the pod run."""
        meta = pod["metadata"]
        try:
            self._prepare(pod)
            fault = ""
        except PrepareError as error:
            fault = f"Failed to prepare dynamic resources: prepare dynamic resources: {error}"
            self._not_before[meta["uid"]] = time.monotonic() + _RETRY_SECONDS
        with self._lock:
            found = self._hands.store.find(kinds.POD, meta["name"], meta["namespace"])
            if found is None or found["metadata"]["uid"] != meta["uid"]:
                return
            if "startTime" not in found["status"]:
                found = accept(self._hands, found)
            if fault:
                self._hands.tell(found, Told("kubelet", "FailedPrepareDynamicResources", fault))
            elif not is_going(found):
                run(self._hands, found)

    def _prepare(self, pod: Object) -> None:
        with self._lock:
            claims = claims_of(self._hands, pod)
        for claim in claims:
            if not is_reserved(claim, pod):
                raise PrepareError(
                    f"pod {pod['metadata']['name']} ({pod['metadata']['uid']}) is not allowed to use ResourceClaim "
                    f"{claim['metadata']['name']} ({claim['metadata']['uid']})"
                )
            held = _held(claim)
            for driver in held.drivers:
                self._call_prepare(driver, held.claim)
            self._held[claim["metadata"]["uid"]] = held

    def _call_prepare(self, driver: str, claim: Any) -> None:
        if driver not in self._endpoints:
            raise PrepareError(f"ResourceClaim {claim.name}: DRA driver {driver} is not registered")
        request = api_pb2.NodePrepareResourcesRequest(claims=[claim])
        try:
            with _plugin(self._endpoints[driver]) as plugin:
                answer = plugin.NodePrepareResources(request, timeout=_CALL_SECONDS)
        except grpc.RpcError as error:
            raise PrepareError(f"NodePrepareResources: {error}") from error
        if claim.uid not in answer.claims:
            raise PrepareError(f"NodePrepareResources returned no result for ResourceClaim {claim.name}")
        if why := answer.claims[claim.uid].error:
            raise PrepareError(f"NodePrepareResources failed for ResourceClaim {claim.name}: {why}")

    def _release(self) -> None:
        """Unprepare what no pod needs any more, then let deleted pods go."""
        with self._lock:
            needing = [each for each in self._pods() if not is_going(each) and not is_over(each)]
            needed = {claim["metadata"]["uid"] for pod in needing for claim in claims_of(self._hands, pod)}
        for uid in [uid for uid in self._held if uid not in needed and self._is_time(uid)]:
            self._unprepare(uid)
        with self._lock:
            for pod in self._pods():
                claims = {claim["metadata"]["uid"] for claim in claims_of(self._hands, pod)}
                if is_going(pod) and not (claims & self._held.keys() - needed):
                    self._hands.delete(pod, at_once=True)

    def _unprepare(self, uid: str) -> None:
        held = self._held[uid]
        request = api_pb2.NodeUnprepareResourcesRequest(claims=[held.claim])
        try:
            for driver in held.drivers:
                with _plugin(self._endpoints[driver]) as plugin:
                    answer = plugin.NodeUnprepareResources(request, timeout=_CALL_SECONDS)
                if answer.claims[uid].error:
                    self._not_before[uid] = time.monotonic() + _RETRY_SECONDS
                    return
        except grpc.RpcError:
            self._not_before[uid] = time.monotonic() + _RETRY_SECONDS
            return
        del self._held[uid]

    def _is_time(self, uid: str) -> bool:
        return self._not_before.get(uid, 0.0) <= time.monotonic()


def _held(claim: Object) -> _Held:
    meta = claim["metadata"]
    named = api_pb2.Claim(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
    drivers = (each["driver"] for each in claim["status"]["allocation"]["devices"]["results"])
    return _Held(named, tuple(dict.fromkeys(drivers)))


def _introduced(socket: Path) -> Any:
    """What a plugin says of itself, told that it is registered; None where it does not answer or is no DRA plugin."""
    try:
        with grpc.insecure_channel(f"unix://{socket}", options=_OPTIONS) as channel:
            plugin = registration_grpc.RegistrationStub(channel)
            info = plugin.GetInfo(registration_pb2.InfoRequest(), timeout=_RETRY_SECONDS)
            fits = _SERVICE in info.supported_versions
            why = "" if fits else f"none of {list(info.supported_versions)} is {_SERVICE}"
            status = registration_pb2.RegistrationStatus(plugin_registered=fits, error=why)
            plugin.NotifyRegistrationStatus(status, timeout=_RETRY_SECONDS)
    except grpc.RpcError:
        return None
    return info if fits else None


_OPTIONS: Final = [("grpc.default_authority", "localhost")]


@contextmanager
def _plugin(endpoint: str) -> Iterator[Any]:
    with grpc.insecure_channel(f"unix://{endpoint}", options=_OPTIONS) as channel:
        yield api_pb2_grpc.DRAPluginStub(channel)
