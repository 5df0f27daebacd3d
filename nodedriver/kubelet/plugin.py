"""The DRAPlugin service: protobuf to the driver's verbs and back, one thread a claim, one answer a claim.

The first claim of a call, mostly its only one, has the call's own thread: each hop to another costs the kubelet time.
Serves v1 and v1beta1, which differ in share ids only. A claim's error stands in its own answer; the call itself does
not fail, since that would fail its neighbours (kubelet DRA plugin API).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol
from uuid import uuid4

import structlog

from dra.names import ClaimRef, ClaimUID
from nodedriver.driver import Failed, PrepareResult
from nodedriver.pb.dra.v1 import api_pb2 as v1_pb2
from nodedriver.pb.dra.v1 import api_pb2_grpc as v1_grpc
from nodedriver.pb.dra.v1beta1 import api_pb2 as v1beta1_pb2
from nodedriver.pb.dra.v1beta1 import api_pb2_grpc as v1beta1_grpc

_CLAIMS = 32  # worked on at once; most of them wait for a lock


class Verbs(Protocol):
    """What the service asks of the driver, for one resource claim each. Neither raises."""

    def prepare(self, ref: ClaimRef) -> PrepareResult:
        """Make the claim's devices ready; repeating answers the same."""

    def unprepare(self, ref: ClaimRef) -> str:
        """Undo that; "" when nothing is left to undo, else the error."""


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """One version of the service: its name at registration, its messages, and how a servicer joins a server."""

    service: str
    messages: ModuleType
    has_share_ids: bool
    add_to_server: Callable[[object, object], None]


V1 = ApiVersion("v1.DRAPlugin", v1_pb2, has_share_ids=True, add_to_server=v1_grpc.add_DRAPluginServicer_to_server)
V1BETA1 = ApiVersion(
    "v1beta1.DRAPlugin", v1beta1_pb2, has_share_ids=False, add_to_server=v1beta1_grpc.add_DRAPluginServicer_to_server
)
API_VERSIONS = (V1, V1BETA1)  # the kubelet takes the first that it knows


class Calls:
    """The calls of the kubelet that run now, over all API versions, and the work on their claims."""

    def __init__(self) -> None:
        self._running = 0
        self._fewer = threading.Condition()
        self._room = threading.Semaphore(_CLAIMS)
        self._threads = ThreadPoolExecutor(_CLAIMS, thread_name_prefix="claim")

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what runs inside."""
        with self._fewer:
            self._running += 1
        try:
            yield
        finally:
            with self._fewer:
                self._running -= 1
                self._fewer.notify_all()

    def finish(self, seconds: float) -> bool:
        """Wait until none runs; whether it came to that."""
        with self._fewer:
            return self._fewer.wait_for(lambda: not self._running, seconds)

    def for_each(self, refs: Sequence[ClaimRef], work: Callable[[ClaimRef], Any]) -> list[Any]:
        """The work's answers, all claims at once. What the logs say of the call is said in every thread."""
        others = [self._threads.submit(copy_context().run, self._in_room, ref, work) for ref in refs[1:]]
        return [*(self._in_room(ref, work) for ref in refs[:1]), *(other.result() for other in others)]

    def _in_room(self, ref: ClaimRef, work: Callable[[ClaimRef], Any]) -> Any:
        with self._room:
            return work(ref)


class DraPlugin:
    """The service of one API version. Method names and messages are the protocol's own."""

    def __init__(self, verbs: Verbs, api: ApiVersion, calls: Calls) -> None:
        self._verbs = verbs
        self._api = api
        self._calls = calls
        self._messages = api.messages

    def NodePrepareResources(self, request: Any, context: object) -> Any:  # noqa: N802
        """Prepare each claim, all at once; claims of one card wait for each other at its lock."""
        answers = self._for_each(request, "NodePrepareResources", self._prepare)
        return self._messages.NodePrepareResourcesResponse(claims=answers)

    def NodeUnprepareResources(self, request: Any, context: object) -> Any:  # noqa: N802
        """Unprepare each claim."""
        answers = self._for_each(request, "NodeUnprepareResources", self._unprepare)
        return self._messages.NodeUnprepareResourcesResponse(claims=answers)

    def _prepare(self, ref: ClaimRef) -> Any:
        result = self._verbs.prepare(ref)
        if isinstance(result, Failed):
            return self._messages.NodePrepareResourceResponse(error=result.error)
        return self._messages.NodePrepareResourceResponse(
            devices=[
                self._messages.Device(
                    request_names=[device.device_request],
                    pool_name=device.pool,
                    device_name=device.device,
                    cdi_device_ids=device.cdi_device_ids,
                    **({"share_id": device.share_id} if self._api.has_share_ids else {}),
                )
                for device in result.devices
            ]
        )

    def _unprepare(self, ref: ClaimRef) -> Any:
        return self._messages.NodeUnprepareResourceResponse(error=self._verbs.unprepare(ref))

    def _for_each(self, request: Any, call: str, work: Callable[[ClaimRef], Any]) -> dict[str, Any]:
        """The answers by uid. Every log line of the call carries its op_id."""
        refs = [ClaimRef(claim.namespace, claim.name, ClaimUID(claim.uid)) for claim in request.claims]
        with self._calls.counted(), structlog.contextvars.bound_contextvars(op_id=uuid4().hex[:12], call=call):
            answers = self._calls.for_each(refs, work)
        return {ref.uid: answer for ref, answer in zip(refs, answers, strict=True)}
