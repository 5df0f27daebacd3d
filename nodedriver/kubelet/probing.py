"""Whether the kubelet took us, and our own sockets answer as it asks them: calls that name no claim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc

from nodedriver.kubelet.server import Endpoints
from nodedriver.pb.dra.v1 import api_pb2, api_pb2_grpc
from nodedriver.pb.pluginregistration.v1 import api_pb2 as registration_pb2
from nodedriver.pb.pluginregistration.v1 import api_pb2_grpc as registration_grpc

_SECONDS = 5.0  # for an answer


def kubelet_side(endpoints: Endpoints) -> dict[str, str]:
    """What is wrong, by check; "" where nothing is."""
    return {
        "registration": "" if endpoints.registered.is_set() else "the kubelet has not registered this driver yet",
        "registration-socket": _asked(endpoints.registration_socket, _get_info),
        "dra-socket": _asked(endpoints.dra_socket, _prepare_nothing),
    }


def _get_info(channel: grpc.Channel) -> object:
    return registration_grpc.RegistrationStub(channel).GetInfo(registration_pb2.InfoRequest(), timeout=_SECONDS)


def _prepare_nothing(channel: grpc.Channel) -> object:
    request = api_pb2.NodePrepareResourcesRequest()
    return api_pb2_grpc.DRAPluginStub(channel).NodePrepareResources(request, timeout=_SECONDS)


def _asked(path: Path, call: Callable[[grpc.Channel], object]) -> str:
    # Without an authority, gRPC makes one of the socket's path, which servers refuse.
    with grpc.insecure_channel(f"unix://{path}", options=[("grpc.default_authority", "localhost")]) as channel:
        try:
            call(channel)
        except grpc.RpcError as error:
            return f"{path} does not answer ({error.code().name}): {error.details()}"
    return ""
