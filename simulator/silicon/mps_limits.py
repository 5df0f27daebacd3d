"""MPS limits as text and as numbers, and how a client's environment meets the server's: it can only tighten.

Pure. Source: NVIDIA MPS documentation, "Environment Variables" and "Control Daemon Commands"; a memory value is an
integer with G or M, a device an ordinal within CUDA_VISIBLE_DEVICES of the daemon, or a UUID.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MEMORY = re.compile(r"(\d+)([GM])")
_UNITS = {"G": 1024**3, "M": 1024**2}

PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
MEMORY_LIMIT = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What the server holds one client to. No memory limit is None."""

    active_thread_percentage: float
    memory_bytes: int | None


def parse_memory(text: str) -> int:
    """Bytes of a memory value such as 10G or 512M; ValueError for anything else."""
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no memory value: write an integer followed by G or M.")
    return int(found[1]) * _UNITS[found[2]]


def format_memory(size: int) -> str:
    """A memory value in G where it is whole gibibytes, else in M."""
    unit = "G" if size % _UNITS["G"] == 0 else "M"
    return f"{size // _UNITS[unit]}{unit}"


def parse_percentage(text: str) -> float:
    """A percentage above 0 and up to 100; ValueError for anything else."""
    value = float(text)
    if not 0 < value <= 100:
        raise ValueError(f"{text!r} is no active thread percentage: it must be above 0 and at most 100.")
    return value


def parse_device_limits(text: str, devices: Sequence[str]) -> dict[str, int]:
    """`0=1G,GPU-…=512M` as bytes per UUID. A device that is not among `devices` is passed over, as CUDA does."""
    limits = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        uuid = resolve_device(name, devices)
        if uuid is not None:
            limits[uuid] = parse_memory(value)
    return limits


def resolve_device(name: str, devices: Sequence[str]) -> str | None:
    """The UUID that an ordinal or UUID names among `devices`, or None."""
    if name in devices:
        return name
    if name.isdecimal() and int(name) < len(devices):
        return devices[int(name)]
    return None


def tightened(server: ClientLimits, uuid: str, environment: Mapping[str, str], devices: Sequence[str]) -> ClientLimits:
    """The smaller of what the server has and what the client's environment asks for; ValueError for nonsense in it."""
    percentage = server.active_thread_percentage
    if environment.get(PERCENTAGE):
        percentage = min(percentage, parse_percentage(environment[PERCENTAGE]))
    asked = parse_device_limits(environment.get(MEMORY_LIMIT, ""), devices).get(uuid)
    limits = [limit for limit in (server.memory_bytes, asked) if limit is not None]
    return ClientLimits(percentage, min(limits, default=None))
