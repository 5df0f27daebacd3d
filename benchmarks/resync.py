"""The read model of 45,000 slices with 1.1 million devices: filled from pages of 100, listed again, changed once.

The peer is `json.loads` of the same pages in the same run. The database is an empty SQLite file on disk; the stream's
own page path is run, without a network. Memory is the peak of this process while it fills.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machines
from benchmarks.readmodel import another_database, put, stamped, use_database
from benchmarks.report import Report
from dra.kube.requests import Request

NODES = int(os.environ.get("PORTICO_BENCH_NODES", "5000"))
SLICES = NODES * (machines.CARDS + 1)
PARTS = (5, 50)  # smaller fleets, to see whether a change costs more in a larger one
PAGE = 100
RATIO, MEMORY_MB, GROWTH = 3.0, 500.0, 2.0
CHANGES = 40


class Pages:
    """A cluster that answers lists of slices, page by page, made when asked."""

    def __init__(self, slices: int) -> None:
        self._slices = slices
        self.spent = 0.0  # seconds that making pages took: no part of what is measured

    def send(self, request: Request) -> bytes:
        """The page at the token, which is the number of nodes already sent."""
        began = time.perf_counter()
        token = dict(request.query).get("continue", "")
        start = int(token or 0)
        body = _page(start, self._slices)
        self.spent += time.perf_counter() - began
        return body

    def server_time(self) -> datetime | None:
        """No clock is told."""
        return None

    def stream(self, request: Request) -> AbstractContextManager[Iterator[bytes]]:
        """No watch is asked for here."""
        raise NotImplementedError(request.path)


def run(report: Report) -> None:
    """Print the ratio of the first fill, its memory, what a second list writes, and what one change costs by size."""
    with tempfile.TemporaryDirectory() as folder:
        parsed = _parse(range(0, SLICES, 2 * PAGE))
        use_database(Path(folder) / "read-model.sqlite3")
        filled = _fill(SLICES)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        parsed += _parse(range(PAGE, SLICES, 2 * PAGE))
        report.ratio("first fill to json.loads of the same pages", filled / parsed, budget=RATIO)
        report.value("json.loads of all pages, half of it before and half after", parsed, "s")
        report.value("first fill", filled, "s")
        report.value("peak memory of the process", peak, "MB", budget=MEMORY_MB)
        _again(report)
        changed = {SLICES: _change(report, SLICES)}
        for part in PARTS:
            another_database(Path(folder) / f"read-model-{part}.sqlite3")
            _fill(SLICES // part)
            changed[SLICES // part] = _change(report, SLICES // part)
        growth = changed[max(changed)] / changed[min(changed)]
        report.ratio(f"a change among {max(changed)} slices to one among {min(changed)}", growth, budget=GROWTH)


def _fill(slices: int) -> float:
    """Seconds of a list by pages into the read model, without those that making the pages took."""
    from gpuinventory.services import lease  # noqa: PLC0415 - only once Django is set up
    from gpuinventory.services.stream import Stream, list_by_pages  # noqa: PLC0415 - only once Django is set up

    pages = Pages(slices)
    stream = Stream(
        kind="ResourceSlice",
        holder="bench",
        connect=lambda: pages,
        clock=lambda: datetime.now(UTC),
        seconds=1,
        stopping=lambda: False,
    )
    lease.take(stream.kind, stream.holder, stream.clock())
    began = time.perf_counter()
    list_by_pages(stream, pages)
    took = time.perf_counter() - began - pages.spent
    lease.release(stream.kind, stream.holder)
    return took


def _again(report: Report) -> None:
    from gpuinventory.selectors import revision  # noqa: PLC0415 - only once Django is set up

    before = revision()
    took = _fill(SLICES)
    report.value("revisions that a second, unchanged list writes", revision() - before, "", budget=0)
    report.value("second, unchanged list", took, "s")


def _change(report: Report, slices: int) -> float:
    """Milliseconds from the word about one changed slice until the snapshot has it: the median of several."""
    from gpuinventory.selectors import held  # noqa: PLC0415 - only once Django is set up

    began = time.perf_counter()
    held.current()
    report.value(f"the snapshot read from all rows of {slices} slices", time.perf_counter() - began, "s")
    times: list[float] = []
    for number, name in enumerate(machines.names(CHANGES)):
        body = stamped(machines.bodies_of(name)[-1], 1_000 + number)
        before = held.current().snapshot
        began = time.perf_counter()
        put("ResourceSlice", [body])
        after = held.current().snapshot
        times.append((time.perf_counter() - began) * 1e3)
        if after is before:
            raise AssertionError(f"the snapshot did not change with {name}")
    median = statistics.median(times)
    report.value(f"a changed slice among {slices} is in the snapshot, median", median, "ms")
    report.value(f"a changed slice among {slices} is in the snapshot, worst", max(times), "ms")
    return median


def _parse(starts: range) -> float:
    """Seconds of json.loads of the pages that start there."""
    took = 0.0
    for start in starts:
        page = _page(start, SLICES)
        began = time.perf_counter()
        json.loads(page)
        took += time.perf_counter() - began
    return took


def _page(start: int, slices: int) -> bytes:
    """The slices from that number on, as the API server lists them, of so many in all."""
    each = machines.CARDS + 1
    end = min(start + PAGE, slices)
    items = []
    for node in range(start // each, (end - 1) // each + 1):
        bodies = machines.bodies_of(f"node-{node:05}")
        first, last = max(start - node * each, 0), min(end - node * each, each)
        items += [stamped(body, 1) for body in bodies[first:last]]
    more = str(end) if end < slices else ""
    metadata = json.dumps({"resourceVersion": "1", "continue": more}).encode()
    head = b'{"kind":"ResourceSliceList","apiVersion":"resource.k8s.io/v1","metadata":' + metadata
    return head + b',"items":[' + b",".join(items) + b"]}"
