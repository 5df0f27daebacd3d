"""PriorityClasses as read, for people to choose from; none where the kind is not followed or not there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from dra.kube.requests import PRIORITY_CLASSES
from gpuinventory.models import ClusterObject

_KEPT = SimpleNamespace()  # for all threads: asked for with each preview, and changed seldom
_SYSTEM: Final = "system-"  # Kubernetes keeps these for what runs the cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassView:
    """One class. Of two pods that wait the one with the higher `value` is looked at first."""

    name: str
    value: int
    default: bool


def priority_classes(revision: int) -> tuple[PriorityClassView, ...]:
    """Those that people may use, the highest first. One query where the revision is another than the last."""
    known: tuple[int, tuple[PriorityClassView, ...]] | None = getattr(_KEPT, "known", None)
    if known is None or known[0] != revision:
        bodies = ClusterObject.objects.filter(kind=PRIORITY_CLASSES.kind).values_list("body", flat=True)
        found = map(_view, (json.loads(bytes(body)) for body in bodies))
        usable = (each for each in found if not each.name.startswith(_SYSTEM))
        known = _KEPT.known = (revision, tuple(sorted(usable, key=lambda each: (-each.value, each.name))))
    return known[1]


def _view(content: dict[str, Any]) -> PriorityClassView:
    return PriorityClassView(
        name=content["metadata"]["name"],
        value=int(content.get("value") or 0),
        default=bool(content.get("globalDefault")),
    )
