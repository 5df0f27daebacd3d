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
from benchmarks.report import Report
from dra.kube.requests import Request
from dra.objects import decode

NODES = int(os.environ.get("PORTICO_BENCH_NODES", "5000"))
PAGE = 100
RATIO, MEMORY_MB, CHANGE_MS = 3.0, 500.0, 20.0
CHANGES = 20


class Pages:
    """A cluster that answers lists of slices, page by page, made when asked."""

    def __init__(self) -> None:
        self.spent = 0.0  # seconds that making pages took: no part of what is measured

    def send(self, request: Request) -> bytes:
        """The page at the token, which is the number of nodes already sent."""
        began = time.perf_counter()
        token = dict(request.query).get("continue", "")
        start = int(token or 0)
        body = _page(start)
        self.spent += time.perf_counter() - began
        return body

    def stream(self, request: Request) -> AbstractContextManager[Iterator[bytes]]:
        """No watch is asked for here."""
        raise NotImplementedError(request.path)


def run(report: Report) -> None:
    """Print the ratio of the first fill, its memory, what a second list writes, and what one change costs."""
    parsed = _parse_all()
    with tempfile.TemporaryDirectory() as folder:
        _use_database(Path(folder) / "read-model.sqlite3")
        filled = _fill()
        report.ratio("first fill to json.loads of the same pages", filled / parsed, budget=RATIO)
        report.value("json.loads of all pages", parsed, "s")
        report.value("first fill", filled, "s")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        report.value("peak memory of the process", peak, "MB", budget=MEMORY_MB)
        _again(report)
        _changes(report)


def _fill() -> float:
    """Seconds of a list by pages into the read model, without those that making the pages took."""
    from gpuinventory.services import lease  # noqa: PLC0415 - only once Django is set up
    from gpuinventory.services.stream import Stream, list_by_pages  # noqa: PLC0415 - only once Django is set up

    pages = Pages()
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
    took = _fill()
    report.value("revisions that a second, unchanged list writes", revision() - before, "", budget=0)
    report.value("second, unchanged list", took, "s")


def _changes(report: Report) -> None:
    """One changed slice at a time: written, then seen in the snapshot."""
    from dra.kube.responses import Header  # noqa: PLC0415 - only once Django is set up
    from gpuinventory.selectors import held  # noqa: PLC0415 - only once Django is set up
    from gpuinventory.services.ingest import Seen, ingest  # noqa: PLC0415 - only once Django is set up

    began = time.perf_counter()
    held.current()
    report.value("the snapshot read from all rows", time.perf_counter() - began, "s")
    times: list[float] = []
    for number, name in enumerate(machines.names(CHANGES)):
        body = _stamped(machines.bodies_of(name)[-1], 1_000 + number)
        ingest("ResourceSlice", [Seen(decode(body, Header).metadata, body)])
        began = time.perf_counter()
        held.current()
        times.append((time.perf_counter() - began) * 1e3)
    report.value("a changed slice reaches the snapshot, median", statistics.median(times), "ms", budget=CHANGE_MS)
    report.value("a changed slice reaches the snapshot, worst", max(times), "ms")


def _parse_all() -> float:
    """Seconds of json.loads of every page."""
    took, token = 0.0, 0
    while token < NODES * _slices_a_node():
        page = _page(token)
        began = time.perf_counter()
        json.loads(page)
        took += time.perf_counter() - began
        token += PAGE
    return took


def _page(start: int) -> bytes:
    """The slices from that number on, as the API server lists them."""
    each = _slices_a_node()
    end = min(start + PAGE, NODES * each)
    items = []
    for node in range(start // each, (end - 1) // each + 1):
        bodies = machines.bodies_of(f"node-{node:05}")
        first, last = max(start - node * each, 0), min(end - node * each, each)
        items += [_stamped(body, 1) for body in bodies[first:last]]
    more = str(end) if end < NODES * each else ""
    metadata = json.dumps({"resourceVersion": "1", "continue": more}).encode()
    head = b'{"kind":"ResourceSliceList","apiVersion":"resource.k8s.io/v1","metadata":' + metadata
    return head + b',"items":[' + b",".join(items) + b"]}"


def _stamped(body: bytes, version: int) -> bytes:
    """With the resourceVersion and the uid that a server gives; written into the text, which is much quicker."""
    stamp = f'"metadata":{{"uid":"{hash(body) & 0xFFFFFFFF:08x}","resourceVersion":"{version}",'
    return body.replace(b'"metadata":{', stamp.encode(), 1)


def _slices_a_node() -> int:
    return machines.CARDS + 1


def _use_database(path: Path) -> None:
    """Django on an empty file, with all tables."""
    os.environ["PORTICO_DATABASE_URL"] = f"sqlite:///{path}"
    os.environ.setdefault("PORTICO_SECRET_KEY", "x" * 60)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    os.environ.setdefault("PORTICO_LOG_LEVEL", "WARNING")
    import django  # noqa: PLC0415 - only once Django is set up
    from django.core.management import call_command  # noqa: PLC0415 - only once Django is set up

    django.setup()
    call_command("migrate", verbosity=0)
