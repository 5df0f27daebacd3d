"""A CUDA program for the stand-in: `python -m simulator.silicon.cuda alloc 10G [--hold]`.

It goes through MPS when a daemon answers in CUDA_MPS_PIPE_DIRECTORY, and else opens the card itself under its compute
mode (SILICON_STATE, CUDA_VISIBLE_DEVICES or NVIDIA_VISIBLE_DEVICES). It prints one JSON line and ends with the CUresult
as its status (1 above 255), or with 0, at once or, with --hold, when it is ended; its memory lives as long as it does.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from simulator.silicon import contexts
from simulator.silicon.contexts import CudaRefused, CudaResult
from simulator.silicon.hardware import Process, ProcessKind, Silicon
from simulator.silicon.mps import DEFAULT_PIPE_DIRECTORY
from simulator.silicon.mps_limits import parse_memory, resolve_device
from simulator.silicon.state import State, start_time

_PASSED_ON = ("CUDA_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")


def main() -> int:
    """Run as the program; returns its exit status."""
    parser = argparse.ArgumentParser(prog="cuda")
    parser.add_argument("action", choices=["alloc"])
    parser.add_argument("size", type=parse_memory, help="such as 10G or 512M")
    parser.add_argument("--hold", action="store_true", help="keep the memory until ended")
    arguments = parser.parse_args()
    connection = _daemon_connection()
    answer = _through_mps(connection, arguments.size) if connection else _directly(arguments.size)
    answer = {"ok": answer["code"] == 0, **answer}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    if answer["code"] == 0 and arguments.hold:
        return _hold(connection)
    return int(answer["code"]) if answer["code"] <= 255 else 1


def _hold(connection: socket.socket | None) -> int:
    """Keep the context until a signal ends this program. A lost MPS server ends it too, with status 1."""
    if connection is None:
        signal.pause()
        return 0
    connection.recv(1)
    sys.stderr.write("The MPS server has gone: the context is lost.\n")
    return 1


def _daemon_connection() -> socket.socket | None:
    """A connection to the MPS daemon of the pipe directory, or None when nothing answers there."""
    control = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", DEFAULT_PIPE_DIRECTORY)) / "control"
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(control))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _through_mps(connection: socket.socket, size: int) -> dict[str, Any]:
    lines = connection.makefile("rw")
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    answer = _ask(lines, {"cuda": "connect", "environment": environment})
    if answer["code"] == 0:
        answer |= _ask(lines, {"cuda": "alloc", "bytes": size})
    return {"via": "mps", "bytes": size, **answer}


def _ask(lines: Any, message: dict[str, Any]) -> dict[str, Any]:
    lines.write(json.dumps(message) + "\n")
    lines.flush()
    answer: dict[str, Any] = json.loads(lines.readline())
    return answer


def _directly(size: int) -> dict[str, Any]:
    """Open the card without MPS, and allocate."""
    pid = os.getpid()
    process = Process(pid=pid, started=start_time(pid) or 0, uid=os.getuid(), kind=ProcessKind.COMPUTE)

    def step(silicon: Silicon) -> tuple[Silicon, str]:
        uuid = _visible_device(silicon)
        opened = contexts.open_context(silicon, uuid, process)
        return contexts.allocate(opened, uuid, process, size), uuid

    answer: dict[str, Any] = {"via": "direct", "bytes": size}
    try:
        uuid = State(Path(os.environ["SILICON_STATE"])).change(step)
    except CudaRefused as refusal:
        return {**answer, "result": refusal.result.name, "code": refusal.result.value, "why": refusal.why}
    return {**answer, "result": "CUDA_SUCCESS", "code": 0, "device": uuid}


def _visible_device(silicon: Silicon) -> str:
    """The first device that the environment leaves visible."""
    cards = [gpu.uuid for gpu in silicon.gpus]
    for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        value = os.environ.get(variable)
        if value is None or value in ("all", "void"):
            continue
        name = value.split(",")[0]
        if not name:
            raise CudaRefused(CudaResult.CUDA_ERROR_NO_DEVICE, f"{variable} is empty")
        return resolve_device(name, cards) or name
    return cards[0]


if __name__ == "__main__":
    sys.exit(main())
