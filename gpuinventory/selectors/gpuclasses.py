"""The catalogue of GPU classes, as it follows from the fleet in memory and the GPUClass objects.

Kept for all threads while neither changes: pages ask often, and both change seldom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace

from dra.allocation import Snapshot
from dra.errors import DraError
from dra.kube.requests import GPU_CLASSES
from dra.objects import GPUClass, decode
from gpuinventory.gpuclasses import GPUClassView, Numbers, derive, numbers_of, open_nodes
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


def catalogue(held: Held) -> Catalogue:
    """The classes of this fleet. One query; derived anew where the fleet or a GPUClass has changed."""
    rows = _rows()
    known: tuple[Snapshot, _Rows, Catalogue] | None = getattr(_KEPT, "catalogue", None)
    if known is None or known[0] is not held.snapshot or known[1] != rows:
        problems: list[str] = []
        views = derive(held.snapshot, _read(rows, problems))
        known = _KEPT.catalogue = (held.snapshot, rows, Catalogue(views, tuple(problems)))
    return known[2]


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
