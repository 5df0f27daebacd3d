"""Stand-in for NVIDIA's program nvidia-cuda-mps-control with options: the daemon, or help. Else `mps_client` runs.

Reads what the real one reads: CUDA_MPS_PIPE_DIRECTORY, CUDA_MPS_LOG_DIRECTORY, CUDA_VISIBLE_DEVICES and the two limits;
beside them SILICON_STATE, which its launcher sets. Settings live as long as the daemon.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from simulator.silicon import mps_modules
from simulator.silicon.hardware import MpsDaemon
from simulator.silicon.mps_daemon import AlreadyRunningError, Daemon, PipeDirectory
from simulator.silicon.mps_limits import MEMORY_LIMIT, PERCENTAGE, parse_device_limits, parse_percentage, resolve_device
from simulator.silicon.mps_service import Service
from simulator.silicon.state import State, start_time

DEFAULT_PIPE_DIRECTORY = "/tmp/nvidia-mps"  # noqa: S108 - NVIDIA's own default


def main() -> int:
    """Run as the program; returns its exit status."""
    state = State(Path(os.environ["SILICON_STATE"]))
    arguments = _parser(has_v3=mps_modules.is_offered(state.read().driver_version)).parse_args()
    pipes = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", DEFAULT_PIPE_DIRECTORY))
    directory = PipeDirectory(pipes, Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps")))
    ready = _background() if arguments.daemon else None
    try:
        _run_daemon(directory, ready, arguments)
    except (AlreadyRunningError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser(*, has_v3: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nvidia-cuda-mps-control", epilog=mps_modules.HELP if has_v3 else None)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("-f", dest="foreground", action="store_true", help="run the daemon in the foreground")
    how.add_argument("-d", dest="daemon", action="store_true", help="run the daemon in the background")
    new = ("-m", "--multiuser") if has_v3 else ()
    parser.add_argument("-M", "-multiuser-server", *new, dest="multi_user", action="store_true")
    parser.set_defaults(protocol=2)
    if has_v3:
        parser.add_argument("-p", "--protocol", type=int, choices=(2, 3))
    return parser


def _run_daemon(directory: PipeDirectory, ready: int | None, arguments: argparse.Namespace) -> None:
    listener = directory.claim()
    signals = _signals()
    state = State(Path(os.environ["SILICON_STATE"]))
    daemon = _daemon(state, directory.path, os.environ)
    service = Service(state, replace(daemon, multi_user=arguments.multi_user, protocol=arguments.protocol))
    directory.announce()
    if ready is not None:
        os.write(ready, b"1")
        os.close(ready)
    Daemon(listener, service, directory, signals).serve()


def _daemon(state: State, pipes: Path, environment: Mapping[str, str]) -> MpsDaemon:
    """This process as a daemon, with the defaults that its environment sets."""
    devices = _devices(state, environment.get("CUDA_VISIBLE_DEVICES"))
    return MpsDaemon(
        pid=os.getpid(),
        started=start_time(os.getpid()) or 0,
        pipe_directory=str(pipes.absolute()),
        multi_user=False,
        devices=devices,
        default_active_thread_percentage=parse_percentage(environment.get(PERCENTAGE) or "100"),
        default_memory_limits=parse_device_limits(environment.get(MEMORY_LIMIT, ""), devices),
    )


def _devices(state: State, visible: str | None) -> tuple[str, ...]:
    """UUIDs in the order of CUDA_VISIBLE_DEVICES. A UUID is taken unseen; a server will tell."""
    cards = [gpu.uuid for gpu in state.read().gpus]
    names = cards if visible is None else [name for name in visible.split(",") if name]
    return tuple(resolve_device(name, cards) or name for name in names)


def _signals() -> int:
    """A descriptor that can be read once a signal says stop. What a handler raises may be lost in a finalizer."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer)
    return reader


def _background() -> int:
    """Go into the background: the caller's process ends when the daemon is ready (status 0) or has failed (1)."""
    read_end, write_end = os.pipe()
    if os.fork() != 0:
        os.close(write_end)
        os._exit(0 if os.read(read_end, 1) else 1)
    os.close(read_end)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    return write_end


if __name__ == "__main__":
    sys.exit(main())
