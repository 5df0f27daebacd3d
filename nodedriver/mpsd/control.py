"""How a control daemon is commanded, through NVIDIA's own program: what both of its interfaces have in common.

`classic.py` is protocol 2, with one set of limits a daemon; `namespaces.py` is protocol 3, with limits for each share.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from nodedriver.driverroot import find_program, library_folders
from nodedriver.gpuconfig import MpsLimits
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError

PROGRAM = "nvidia-cuda-mps-control"
WHOLE = 100  # percent: MPS's own default
MIB = 2**20
UNLIMITED = 2**40  # bytes; MPS has no command to lift a memory limit, and no card has that much
COMMAND_TIMEOUT = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Program:
    """NVIDIA's program and the environment in which it finds its server and libcuda.

    `protocol`: what new daemons speak. `remark`: why that is not what was asked for, else "".
    """

    path: Path
    environment: dict[str, str]
    protocol: int = 2
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Doors:
    """How clients reach a daemon: its pipe directory, and the folder that is its /dev/shm, if it has one."""

    pipe: Path
    shared_memory: Path | None

    def status(self, device: str, limits: Limits) -> MpsDaemonStatus:
        """How clients reach the daemon of that device, with its limits."""
        return MpsDaemonStatus(
            device=device,
            pipe_directory=str(self.pipe),
            shared_memory=None if self.shared_memory is None else str(self.shared_memory),
            thread_percentage=limits.thread_percentage,
            memory_limit=limits.memory_limit,
        )


class Limits(NamedTuple):
    """What MPS says that it holds a client to: percent, and bytes or None for no limit."""

    thread_percentage: float
    memory_limit: int | None

    def __str__(self) -> str:
        memory = "no memory limit" if self.memory_limit is None else f"a memory limit of {self.memory_limit // MIB} MiB"
        return f"{self.thread_percentage} % and {memory}"


class Client(NamedTuple):
    """A client by its server's and its own process id; `namespace` of protocol 3."""

    server: int
    pid: int
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """What a daemon said of itself: limits read back, and the process ids of its servers.

    `at_fault`: a client of a server that was asked about met a fatal fault; that server waits for its clients to go.
    """

    status: MpsDaemonStatus
    servers: tuple[int, ...] = ()
    at_fault: bool = False


class Control(Protocol):
    """The control daemon of one pipe directory, which serves one device. All methods raise MpsError, and no others."""

    protocol: int
    options: tuple[str, ...]  # with which NVIDIA's program is the daemon, in the foreground and for all users

    def answers(self) -> bool:
        """Whether the daemon takes commands."""

    def apply(self, spec: MpsDaemonSpec) -> Said:
        """Let a server run and set its limits; what the daemon says then, MpsError when that is not what was asked."""

    def ask(self, servers: Iterable[int] = ()) -> Said:
        """What the daemon says of itself and these servers."""

    def is_as(self, said: Said, spec: MpsDaemonSpec) -> bool:
        """Whether these are the limits that were asked for."""

    def clients(self, servers: Iterable[int]) -> list[Client]:
        """Every client of these servers."""

    def is_of(self, client: Client, claim: str, spec: MpsDaemonSpec) -> bool:
        """Whether that client belongs to that claim's share among these."""

    def terminate(self, client: Client) -> None:
        """Destroy a client's contexts in good order; its process stays. MpsError where that fails, or it has gone."""

    def quit(self, seconds: int) -> None:
        """End the daemon and its servers; clients have so many seconds to go by themselves, where it can wait."""


def find_control_program(driver_root: Path) -> Program:
    """The program below the driver root; MpsError where it is not installed."""
    path = find_program(driver_root, PROGRAM)
    if path is None:
        raise MpsError(
            f"{PROGRAM} is not below the driver root {driver_root}: install the CUDA part of NVIDIA's driver there, "
            "or set the driver root to where it is"
        )
    libraries = ":".join(map(str, library_folders(driver_root)))
    search = f"{path.parent}:{os.defpath}"
    return Program(path, {"PATH": search, "LD_LIBRARY_PATH": libraries})


def speaking(program: Program, protocol: int, nowhere: Path) -> Program:
    """The program for daemons of that protocol, or of protocol 2 where it does not offer 3.

    It is asked for its help, which lists the modules of protocol 3 where there are any (drivers since r615); `nowhere`
    is a pipe directory without a daemon, since a daemon that runs decides the protocol.
    """
    if protocol == 2:
        return program
    environment = program.environment | {"CUDA_MPS_PIPE_DIRECTORY": str(nowhere)}
    try:
        done = subprocess.run(  # noqa: S603 - the program of the driver root
            [program.path, "-p", "3", "-h"], env=environment, stdin=subprocess.DEVNULL, timeout=COMMAND_TIMEOUT,
            check=False, capture_output=True, text=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        remark = f"whether it offers MPS protocol {protocol} is not known, since {error}: protocol 2 serves"
        return replace(program, remark=remark)
    if "namespace" in done.stdout + done.stderr:
        return replace(program, protocol=protocol)
    remark = f"{program.path} does not offer MPS protocol {protocol}, which drivers have since r615: protocol 2 serves"
    return replace(program, remark=remark)


def limits_wanted(limits: MpsLimits | MpsDaemonSpec) -> Limits:
    """What a daemon is to say where these were asked for."""
    memory = None if limits.memory_limit is None else limits.memory_limit // MIB * MIB  # MPS knows no smaller unit
    return Limits(float(limits.thread_percentage or WHOLE), memory)


@dataclass(frozen=True, slots=True)
class Caller:
    """Runs the program against the daemon of a pipe directory."""

    program: Program
    pipe: Path
    device: str

    def run(self, *words: str, lines: str = "", timeout: float = COMMAND_TIMEOUT) -> str:
        """The answer to these arguments, or to lines on stdin, without blanks around it. MpsError at a failure."""
        environment = self.program.environment | {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipe)}
        asked = " ".join(words) or lines
        try:
            done = subprocess.run(  # noqa: S603 - the program of the driver root, with words that we made
                [self.program.path, *words], input=f"{lines}\n", env=environment, timeout=timeout, check=False,
                capture_output=True, text=True,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MpsError(f"the MPS daemon of {self.device} did not answer {asked!r}: {error}") from error
        if done.returncode:
            reason = (done.stderr or done.stdout).strip()[:500]
            raise MpsError(f"the MPS daemon of {self.device} refused {asked!r}: {reason}")
        return done.stdout.strip()

    def odd(self, answer: str) -> MpsError:
        """That the daemon said what nobody understands."""
        return MpsError(f"the MPS daemon of {self.device} answered {answer[:200]!r}, which is no answer we know")
