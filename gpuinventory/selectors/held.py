"""The fleet in memory: what allocation reads, built from the rows once per revision and kept for whoever asks next.

An object that can't be read is left out and named in `problems`, so that one bad slice never hides the others.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from dra.allocation import PublishedSlice, Snapshot, compile_slice
from dra.errors import DraError
from dra.fleet import Fleet
from dra.kube.requests import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra.objects import DeviceClass, Node, ResourceClaim, ResourceSlice, decode
from gpuinventory.claimstate import owning_pod
from gpuinventory.models import ClusterObject
from gpuinventory.selectors.freshness import freshness, revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A fleet at a revision. `waiting` is how many claims with a pod wait for devices, by device class."""

    snapshot: Snapshot
    fleet: Fleet
    waiting: Mapping[str, int]
    revision: int
    as_of: datetime | None
    problems: tuple[str, ...]


class _Keeper:
    """One fleet per process. `Fleet` is changed by every question, so each thread has its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._at = -1
        self._read: tuple[Snapshot, Mapping[str, int], tuple[str, ...]] | None = None

    def current(self) -> Held:
        at = revision()
        with self._lock:
            if self._read is None or at != self._at:
                self._read, self._at = _built(), at
            snapshot, waiting, problems = self._read
        fleet = getattr(self._own, "fleet", None) or Fleet()
        self._own.fleet = fleet
        as_of = freshness().synced_at
        return Held(snapshot=snapshot, fleet=fleet, waiting=waiting, revision=at, as_of=as_of, problems=problems)

    def forget(self) -> None:
        with self._lock:
            self._read = None


_KEEPER = _Keeper()


def current() -> Held:
    """The fleet as the read model has it now. Two queries, and one per kind after a change."""
    return _KEEPER.current()


def forget() -> None:
    """Read everything anew next time: for when rows were replaced and the revision came to the same number again."""
    _KEEPER.forget()


def _built() -> tuple[Snapshot, Mapping[str, int], tuple[str, ...]]:
    problems: list[str] = []
    claims = list(_read(RESOURCE_CLAIMS.kind, lambda body: decode(body, ResourceClaim), problems))
    snapshot = Snapshot.build(
        nodes=_read(NODES.kind, lambda body: decode(body, Node), problems),
        slices=_read(RESOURCE_SLICES.kind, _slice, problems),
        classes=_read(DEVICE_CLASSES.kind, lambda body: decode(body, DeviceClass), problems),
        resource_claims=claims,
    )
    return snapshot, Counter(name for claim in claims for name in _waits_for(claim)), tuple(problems)


def _read[T](kind: str, parse: Callable[[bytes], T], problems: list[str]) -> Iterator[T]:
    rows = (
        ClusterObject.objects.filter(kind=kind).order_by("namespace", "name").values_list("namespace", "name", "body")
    )
    for namespace, name, body in rows:
        try:
            yield parse(bytes(body))
        except DraError as error:
            problems.append(f"{kind} {namespace}/{name}: {error}" if namespace else f"{kind} {name}: {error}")


def _slice(body: bytes) -> PublishedSlice:
    return compile_slice(decode(body, ResourceSlice))


def _waits_for(claim: ResourceClaim) -> set[str]:
    """The classes that a waiting claim names; a claim without a pod waits for none."""
    if claim.status.allocation is not None or claim.metadata.deletion_timestamp or not owning_pod(claim):
        return set()
    requests = claim.spec.devices.requests
    exact = {each.exactly.device_class_name for each in requests if each.exactly is not None}
    return exact | {sub.device_class_name for each in requests for sub in each.first_available}
