"""What Prometheus is told: counts of the kubelet's requests, and what is prepared and published.

Opens no door and reads no file: `Requests` is told of each request, the rest is made from values at each scrape.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dra.slices import SliceContent
from nodedriver.exposition import Family, Labels, Sample
from nodedriver.holding import PreparedClaim

PREPARE: Final = "NodePrepareResources"
UNPREPARE: Final = "NodeUnprepareResources"
# Seconds. From 0.05 on those of NVIDIA's driver, so that quantiles of both can be set side by side.
BUCKETS: Final = tuple(0.00625 * 2**n for n in range(12))
_ERRORS: Final = {PREPARE: "node_prepare_errors_total", UNPREPARE: "node_unprepare_errors_total"}


class Requests:
    """Requests of the kubelet, counted by claim: one call may ask for several. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = Counter({PREPARE: 0, UNPREPARE: 0})
        self._seconds = dict.fromkeys((PREPARE, UNPREPARE), 0.0)
        self._buckets = {operation: [0] * (len(BUCKETS) + 1) for operation in (PREPARE, UNPREPARE)}
        self._errors: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def running(self, operation: str) -> Iterator[None]:
        """Count what runs inside, and how long, however it ends."""
        began = time.perf_counter()
        with self._lock:
            self._running[operation] += 1
        try:
            yield
        finally:
            seconds = time.perf_counter() - began
            with self._lock:
                self._running[operation] -= 1
                self._seconds[operation] += seconds
                self._buckets[operation][bisect_left(BUCKETS, seconds)] += 1

    def failed(self, operation: str, error_type: str) -> None:
        """Count an error."""
        with self._lock:
            self._errors[operation, error_type] += 1

    def families(self, driver: str) -> tuple[Family, ...]:
        """All that was counted so far."""
        with self._lock:
            totals = {operation: sum(counts) for operation, counts in self._buckets.items()}
            return (
                Family("requests_total", "counter", "Claims that the kubelet asked for.", _each(driver, totals)),
                Family("requests_inflight", "gauge", "Claims that are worked on now.", _each(driver, self._running)),
                self._durations(driver, totals),
                *(self._errors_of(driver, operation) for operation in _ERRORS),
            )

    def _durations(self, driver: str, totals: Mapping[str, int]) -> Family:
        samples: list[Sample] = []
        for operation, counts in self._buckets.items():
            labels = {"driver": driver, "operation": operation}
            below = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += count
                samples.append(("_bucket", labels | {"le": bound}, below))
            samples += [("_sum", labels, self._seconds[operation]), ("_count", labels, totals[operation])]
        return Family("request_duration_seconds", "histogram", "How long a claim took.", tuple(samples))

    def _errors_of(self, driver: str, operation: str) -> Family:
        samples = tuple(
            ("", {"driver": driver, "error_type": error_type}, float(count))
            for (of, error_type), count in sorted(self._errors.items())
            if of == operation
        )
        return Family(_ERRORS[operation], "counter", f"Claims for which {operation} failed, by error.", samples)


def _each(driver: str, values: Mapping[str, int]) -> tuple[Sample, ...]:
    return tuple(("", {"driver": driver, "operation": operation}, value) for operation, value in values.items())


def of_prepared(node: Labels, claims: Iterable[PreparedClaim]) -> tuple[Family, ...]:
    """What the checkpoint holds. `node` is the labels of node and driver."""
    devices = [device for claim in claims for device in claim.devices]
    types = Counter(str(device.type) for device in devices)
    daemons = {device.uuid for device in devices if device.mps is not None and not device.admin_access}
    return (
        Family("prepared_devices", "gauge", "Devices and shares given to claims.", _by(node, "device_type", types)),
        Family("mps_daemons", "gauge", "MPS control daemons that claims need.", (("", node, len(daemons)),)),
    )


def of_published(node: Labels, slices: Iterable[SliceContent]) -> tuple[Family, ...]:
    """What the API server has of us."""
    kept = tuple(slices)
    devices = [device for each in kept for device in each.devices]
    taints = Counter(key for device in devices for key in {taint.key for taint in device.taints})
    return (
        Family("published_slices", "gauge", "ResourceSlices in the API server.", (("", node, len(kept)),)),
        Family("published_devices", "gauge", "Devices in them.", (("", node, len(devices)),)),
        Family("tainted_devices", "gauge", "Devices in them with a taint of that key.", _by(node, "key", taints)),
    )


def _by(node: Labels, label: str, counts: Mapping[str, int]) -> tuple[Sample, ...]:
    return tuple(("", {**node, label: value}, counts[value]) for value in sorted(counts))
