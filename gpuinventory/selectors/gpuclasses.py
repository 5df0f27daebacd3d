"""The catalogue of GPU classes, as it follows from the fleet in memory and the GPUClass objects.

Kept for all threads while the classes and the kinds of devices stay: pages ask often, and claims come and go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace

from dra.allocation import PublishedSlice, Snapshot
from dra.errors import DraError
from dra.kube.requests import GPU_CLASSES
from dra.objects import DeviceClass, GPUClass, decode
from dra.pools import PoolID
from gpuinventory.gpuclasses import (
    FleetShape,
    GPUClassView,
    Numbers,
    derive,
    numbers_of,
    open_nodes,
    shapes_of,
    tells_devices_apart,
)
from gpuinventory.models import ClusterObject
from gpuinventory.selectors.held import Held

_KEPT = SimpleNamespace()  # replaced as a whole, so that threads need not wait for each other

type _Rows = tuple[tuple[str, bytes], ...]
type _Asked = tuple[str, tuple[str, ...], int]
"""All that the numbers of a class follow from: a class as a whole can't be a key, its configuration is free JSON."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every class, and the GPUClass objects that can't be read, in words."""

    views: tuple[GPUClassView, ...]
    problems: tuple[str, ...]

    def named(self, name: str) -> GPUClassView | None:
        """The class of that name."""
        return next((view for view in self.views if view.name == name), None)


@dataclass(frozen=True, slots=True)
class _Derived:
    """A catalogue and what it was derived from. Claims and nodes are not among it."""

    catalogue: Catalogue
    rows: _Rows
    classes: Mapping[str, DeviceClass]
    pools: Mapping[PoolID, tuple[PublishedSlice, ...]]
    shapes: tuple[FleetShape, ...]


def catalogue(held: Held) -> Catalogue:
    """The classes of this fleet. One query; derived anew where a DeviceClass, a GPUClass or the kinds of devices
    changed.
    """
    rows, snapshot = _rows(), held.snapshot
    known: _Derived | None = getattr(_KEPT, "catalogue", None)
    if known is None or known.classes is not snapshot.classes or known.rows != rows:
        known = _KEPT.catalogue = _derived(snapshot, rows)
    elif known.pools is not snapshot.pools:
        known = _KEPT.catalogue = _with_pools(known, snapshot)
    return known.catalogue


def _derived(snapshot: Snapshot, rows: _Rows) -> _Derived:
    problems: list[str] = []
    views = derive(snapshot, _read(rows, problems))
    found = Catalogue(views, tuple(problems))
    return _Derived(found, rows, snapshot.classes, snapshot.pools, shapes_of(snapshot))


def _with_pools(known: _Derived, snapshot: Snapshot) -> _Derived:
    """Slices changed: taints come and go, drivers publish again, and mostly the kinds of devices stay."""
    if shapes_of(snapshot) != known.shapes or any(map(tells_devices_apart, snapshot.classes.values())):
        return _derived(snapshot, known.rows)
    return replace(known, pools=snapshot.pools)


def class_numbers(held: Held, view: GPUClassView) -> Numbers:
    """What is free of the class now, on nodes that are open; asked once for each snapshot."""
    known: tuple[Snapshot, Snapshot, dict[_Asked, Numbers]] | None = getattr(_KEPT, "numbers", None)
    if known is None or known[0] is not held.snapshot:
        known = _KEPT.numbers = (held.snapshot, open_nodes(held.snapshot), {})
    asked = (view.device_class, view.selectors, view.share)
    if asked not in known[2]:
        known[2][asked] = numbers_of(view, known[1], held.fleet, held.waiting)
    found, waiting = known[2][asked], held.waiting.get(view.device_class, 0)
    # Claims come to wait and cease to without a change of the snapshot, which knows what is allocated.
    if found.waiting != waiting:
        found = known[2][asked] = replace(found, waiting=waiting)
    return found


def gpu_class(name: str) -> GPUClass | None:
    """The object as it was last seen; None where there is none that can be read. One query."""
    return next(_read(_rows(name=name), []), None)


def _rows(**chosen: str) -> _Rows:
    found = ClusterObject.objects.filter(kind=GPU_CLASSES.kind, **chosen)
    rows = found.order_by("name").values_list("name", "body")
    return tuple((name, bytes(body)) for name, body in rows)


def _read(rows: _Rows, problems: list[str]) -> Iterator[GPUClass]:
    for name, body in rows:
        try:
            yield decode(bytes(body), GPUClass)
        except DraError as error:
            problems.append(f"GPUClass {name}: {error}")
