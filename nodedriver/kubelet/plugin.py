"""The DRAPlugin service: protobuf to the driver's verbs and back, one thread a claim, one answer a claim.

Serves v1 and v1beta1, which differ in share ids only. A claim's error stands in its own answer; the call itself does
not fail, since that would fail its neighbours (kubelet DRA plugin API).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """How many calls of the kubelet run now, over all API versions."""

    def __init__(self) -> None:
        self._running = 0
        self._none = asyncio.Event()
        self._none.set()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what runs inside."""
        self._running += 1
        self._none.clear()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._none.set()

    async def finish(self) -> None:
        """Wait until none runs."""
        await self._none.wait()


class DraPlugin:
    """The service of one API version. Method names and messages are the protocol's own."""

    def __init__(self, verbs: Verbs, api: ApiVersion, calls: Calls) -> None:
        self._verbs = verbs
        self._api = api
        self._calls = calls
        self._messages = api.messages

    async def NodePrepareResources(self, request: Any, context: object) -> Any:  # noqa: N802
        """Prepare each claim, all at once; claims of one card wait for each other at its lock."""
        with self._calls.counted():
            answers = await _for_each(request, "NodePrepareResources", self._prepare)
        return self._messages.NodePrepareResourcesResponse(claims=answers)

    async def NodeUnprepareResources(self, request: Any, context: object) -> Any:  # noqa: N802
        """Unprepare each claim."""
        with self._calls.counted():
            answers = await _for_each(request, "NodeUnprepareResources", self._unprepare)
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


async def _for_each(request: Any, call: str, work: Callable[[ClaimRef], Any]) -> dict[str, Any]:
    """The answers by uid. Every log line of the call carries its op_id."""
    refs = [ClaimRef(claim.namespace, claim.name, ClaimUID(claim.uid)) for claim in request.claims]
    with structlog.contextvars.bound_contextvars(op_id=uuid4().hex[:12], call=call):
        answers = await asyncio.gather(*(asyncio.to_thread(work, ref) for ref in refs))
    return {ref.uid: answer for ref, answer in zip(refs, answers, strict=True)}
