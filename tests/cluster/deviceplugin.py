"""A device plugin as small as they come: it registers with a kubelet and offers some devices of one resource.

Messages of k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 are written by hand: all their fields here are short texts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

_LENGTH_DELIMITED = 2  # wire type of protobuf
_AS_IT_IS = {"request_deserializer": bytes, "response_serializer": bytes}


@contextmanager
def offering(folder: Path, resource: str, devices: Sequence[str]) -> Iterator[None]:
    """The kubelet whose folder for device plugins this is knows the plugin within."""
    ended = threading.Event()
    server = grpc.server(ThreadPoolExecutor(4), handlers=[_service(devices, ended)])
    endpoint = f"{resource.replace('/', '-')}.sock"
    server.add_insecure_port(f"unix:{folder / endpoint}")
    server.start()
    try:
        _register(folder, endpoint, resource)
        yield
    finally:
        ended.set()
        server.stop(5).wait()
        (folder / endpoint).unlink(missing_ok=True)


def _service(devices: Sequence[str], ended: threading.Event) -> Any:
    listed = b"".join(_field(1, _text(1, each) + _text(2, "Healthy")) for each in devices)

    def list_and_watch(_request: bytes, _context: Any) -> Iterator[bytes]:
        yield listed
        ended.wait()

    return grpc.method_handlers_generic_handler(
        "v1beta1.DevicePlugin",
        {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"", **_AS_IT_IS),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(list_and_watch, **_AS_IT_IS),
        },
    )


def _register(folder: Path, endpoint: str, resource: str) -> None:
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix:{folder / 'kubelet.sock'}", options=options) as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        register(_text(1, "v1beta1") + _text(2, endpoint) + _text(3, resource), timeout=30)


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, content: bytes) -> bytes:
    assert len(content) < 128, "a longer one has a length of more than one byte"
    return bytes([number << 3 | _LENGTH_DELIMITED, len(content)]) + content
