"""Memory of a snapshot of 5,000 nodes with 224 devices each, in a fresh process that reads slices one after another.

As a watch would do it, each slice is decoded from JSON of its own, compiled, and let go. A tenth of the nodes is in
each of ten states of use, and every node's view is there, as after a first question. The figure is the resident memory
of the whole process, interpreter and libraries in it; there is no peer, so it is a value with a unit.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from benchmarks import machines
from benchmarks.report import Report
from dra.allocation import PublishedSlice, Snapshot, compile_slice
from dra.objects import ResourceSlice, decode

NODES = 5_000
BUDGET_MB = 400.0


class Figures(msgspec.Struct, frozen=True):
    """What the fresh process measured: resident memory in MB without and with the snapshot, seconds to build it."""

    before: float
    after: float
    compile_seconds: float
    build_seconds: float
    views_seconds: float


def run(report: Report) -> None:
    """Print the memory and how long building took."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.memory"], stdout=subprocess.PIPE, check=True)
    figures = msgspec.json.decode(done.stdout, type=Figures)
    report.value("resident memory with the snapshot", figures.after, "MB", budget=BUDGET_MB)
    report.value("resident memory without it", figures.before, "MB")
    report.value("compiling 45,000 decoded slices", figures.compile_seconds, "s")
    report.value("building the snapshot of them", figures.build_seconds, "s")
    report.value("views and keys of all nodes", figures.views_seconds, "s")


def _measure() -> Figures:
    machines.bodies_of("warm-up")  # the template is no part of the snapshot
    before = _resident_mb()
    names = machines.names(NODES)
    compiled: list[PublishedSlice] = []
    compile_seconds = 0.0
    for name in names:
        slices = [decode(body, ResourceSlice) for body in machines.bodies_of(name)]
        began = time.perf_counter()
        compiled += map(compile_slice, slices)
        compile_seconds += time.perf_counter() - began
    began = time.perf_counter()
    snapshot = Snapshot.build(
        nodes=map(machines.node, names),
        slices=compiled,
        classes=[machines.device_class()],
        resource_claims=machines.held_by_all(names),
    )
    built = time.perf_counter()
    keys = {snapshot.node(name).key for name in names}
    seen = time.perf_counter()
    if len(keys) != machines.STATES:
        raise AssertionError(f"{len(keys)} kinds of nodes, not {machines.STATES}")
    del compiled, names
    gc.collect()
    return Figures(before, _resident_mb(), compile_seconds, built - began, seen - built)


def _resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_measure()))
