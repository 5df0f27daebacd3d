"""The catalogue of GPU classes, and one class: what it is, what is free of it, and who may ask for it.

Numbers and the person's own namespaces only; which other namespaces a class is for, and who changed it, is shown to
operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from claims.selectors import class_history
from claims.views import live
from gpuinventory.gpuclasses import GPUClassView, Made, Numbers
from gpuinventory.selectors.gpuclasses import catalogue, class_numbers
from gpuinventory.selectors.held import Held, current
from portal.badge import Badge
from portal.http import SignedInRequest, nothing_new, page_or_part, signed_in
from portal.selectors import namespaces_of

MODE_WORDS = {
    "any": "Whole, slice or share", "whole": "Whole device", "slice": "Slice of a device (MIG)",
    "share": "Share of a device", "timesliced": "Time-sliced", "vfio": "Passed through (VFIO)",
}  # fmt: skip
_BADGES = {
    "paused": Badge("wait", "◔", "Paused"),
    "replaced": Badge("others", "↪", "Replaced"),
    "fault": Badge("bad", "⊘", "Can't be served"),
    "foreign": Badge("others", "◍", "Not for your namespaces"),
    "none": Badge("others", "●", "None free"),
    "open": Badge("good", "○", "Free now"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownClass:
    """A class with its numbers, as this person sees it. `link` is the form for it, "" where it can't be asked for."""

    view: GPUClassView
    numbers: Numbers
    badge: Badge
    reason: str
    link: str
    mode: str

    @property
    def derived(self) -> bool:
        """Whether no administrator made it."""
        return self.view.made is Made.DERIVED

    @property
    def least_memory(self) -> int:
        """In bytes, 0 where its devices all have the same."""
        least, most = self.view.memory
        return least if least < most else 0


@require_safe
@signed_in
def gpu_classes(request: SignedInRequest) -> HttpResponse:
    """Every class with what is free of it."""
    version = live.version_of()
    if live.knows(request, version):
        return nothing_new()
    held = current()
    found, mine = catalogue(held), namespaces_of(request.user)
    context = {
        "classes": [_shown(held, view, mine) for view in found.views],
        "problems": found.problems if request.user.is_operator else (),
        "history": class_history() if request.user.is_operator else (),
        "shown_version": version,
    }
    return page_or_part(request, "claims/gpuclasses.html", "claims/_gpuclasses.html", context)


@require_safe
@signed_in
def gpu_class(request: SignedInRequest, name: str) -> HttpResponse:
    """One class; an unknown one is 404."""
    version = live.version_of()
    if live.knows(request, version):
        return nothing_new()
    held = current()
    view = catalogue(held).named(name)
    if view is None:
        raise Http404
    context = {
        "shown": _shown(held, view, namespaces_of(request.user)),
        "history": class_history(name) if request.user.is_operator else (),
        "shown_version": version,
    }
    return page_or_part(request, "claims/gpuclass.html", "claims/_gpuclass.html", context)


def _shown(held: Held, view: GPUClassView, namespaces: tuple[str, ...]) -> ShownClass:
    numbers = class_numbers(held, view)
    state, reason = _state(view, numbers, namespaces)
    return ShownClass(
        view=view,
        numbers=numbers,
        badge=_BADGES[state],
        reason=reason,
        link=f"?{urlencode(_query(view))}" if state in ("open", "none") else "",
        mode=MODE_WORDS[view.spec.mode],
    )


def _state(view: GPUClassView, numbers: Numbers, namespaces: tuple[str, ...]) -> tuple[str, str]:
    """The state by its key in `_BADGES`, and why it is so."""
    if view.spec.state == "paused":
        return "paused", view.spec.message
    if view.spec.state == "replaced":
        return "replaced", f"Take {view.spec.replaced_by} instead. {view.spec.message}".strip()
    if view.fault or numbers.fault:
        return "fault", view.fault or numbers.fault
    if view.spec.namespaces and not any(map(view.allows, namespaces)):
        return "foreign", "It is for some namespaces only, and none of them is one of yours."
    return ("open", "") if numbers.free else ("none", "A claim waits until a device is free.")


def _query(view: GPUClassView) -> list[tuple[str, str]]:
    """The form's values for the least that the class gives."""
    spec = view.spec
    pairs = [("class", view.name), ("count", str(spec.count.default))]
    if spec.mode == "share":
        pairs.append(("share", str(spec.share.default)))
    if spec.memory.default:
        pairs.append(("memory", spec.memory.default))
    return pairs
