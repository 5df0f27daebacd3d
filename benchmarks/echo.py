"""What our server adds to gRPC itself: an empty NodePrepareResources against a plain echo, both over unix sockets.

Each server is a process of its own on the same library and threads; one client calls them in turn, so that whatever
else the machine does meets both alike. The first calls warm up and are not counted.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from benchmarks.report import Report
from dra.names import ClaimRef
from nodedriver.driver import Failed, PrepareResult
from nodedriver.kubelet.plugin import Calls
from nodedriver.kubelet.server import add_plugin

CALLS = 3000
WARM_UP = 300
READY_SECONDS = 20.0
PREPARE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
ECHO = "/benchmarks.Echo/Echo"


class NoClaims:
    """Verbs for calls without claims, which ask nothing."""

    def prepare(self, ref: ClaimRef) -> PrepareResult:
        return Failed(f"unexpected claim {ref}")

    def unprepare(self, ref: ClaimRef) -> str:
        return f"unexpected claim {ref}"


def run(report: Report) -> None:
    """Print p50 and p99 of ours divided by the echo's."""
    with tempfile.TemporaryDirectory() as folder, _server("ours", folder) as ours, _server("echo", folder) as echo:
        prepare, plain = _caller(ours, PREPARE), _caller(echo, ECHO)
        times = [(_timed(prepare), _timed(plain)) for _ in range(WARM_UP + CALLS)][WARM_UP:]
    mine, floor = (statistics.quantiles(column, n=100) for column in zip(*times, strict=True))
    report.ratio("p50 of an empty prepare call to a plain gRPC echo", mine[49] / floor[49], budget=1.5)
    report.ratio("p99 of an empty prepare call to a plain gRPC echo", mine[98] / floor[98], budget=3.0)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _caller(path: Path, method: str) -> Callable[[], object]:
    """An empty message is zero bytes, so no message type is needed to call either server."""
    channel = grpc.insecure_channel(f"unix://{path}", options=[("grpc.default_authority", "localhost")])
    grpc.channel_ready_future(channel).result(READY_SECONDS)
    call = channel.unary_unary(method)
    return lambda: call(b"")


@contextmanager
def _server(kind: str, folder: str) -> Iterator[Path]:
    path = Path(folder) / f"{kind}.sock"
    with subprocess.Popen([sys.executable, "-m", "benchmarks.echo", kind, str(path)]) as process:
        try:
            yield path
        finally:
            process.terminate()


def _serve(kind: str, path: str) -> None:
    server = grpc.server(ThreadPoolExecutor(thread_name_prefix="call"))
    if kind == "ours":
        add_plugin(server, NoClaims(), Calls())
    else:
        handler = grpc.unary_unary_rpc_method_handler(_echo)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("benchmarks.Echo", {"Echo": handler}),))
    server.add_insecure_port(f"unix://{path}")
    server.start()
    server.wait_for_termination()


def _echo(request: bytes, _context: object) -> bytes:
    return request


if __name__ == "__main__":
    _serve(*sys.argv[1:])
