"""How far a GPU request has come, as a checklist from its object to a running pod. Pure words over a RequestView."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from claims.lifecycle import State
from claims.manifests import REQUEST_LABEL, workload_file
from claims.selectors import RequestView
from claims.services.objects import resource_of
from gpuinventory.claimstate import ClaimState

_GIVEN = frozenset(
    {
        ClaimState.WAITING_FOR_READY,
        ClaimState.ALLOCATED,
        ClaimState.IN_USE,
        ClaimState.PREPARE_FAILED,
        ClaimState.DEVICE_UNHEALTHY,
    }
)

_COST = "It costs nothing until a pod uses it."
_SHARED_COST = "It is charged to the quota; devices are held while pods use it."
_MADE_READY = "A device is being made ready; the claim below says what it waits for."
_WORDS = {
    State.SUBMITTING: "The API server's answer is not known yet. This page says so when it is.",
    State.NOT_CREATED: "The cluster was asked and has no such object. Press Again to ask once more.",
    State.WITHDRAWN: "It was deleted through the portal.",
    State.GONE: "It was deleted in another way than through this portal.",
}


class Mark(StrEnum):
    """How far a step is; the value is the class that colours it."""

    DONE = "done"
    PART = "part"
    OPEN = "open"
    OFF = "off"


_GLYPHS = {Mark.DONE: "✓", Mark.PART: "◐", Mark.OPEN: "○", Mark.OFF: "\N{EN DASH}"}
_MARK_WORDS = {Mark.DONE: "done", Mark.PART: "partly done", Mark.OPEN: "to come", Mark.OFF: "not to come"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the checklist."""

    title: str
    text: str
    mark: Mark

    @property
    def glyph(self) -> str:
        """Its mark, never without the word beside it."""
        return _GLYPHS[self.mark]

    @property
    def word(self) -> str:
        """Its mark as a word."""
        return _MARK_WORDS[self.mark]


def steps(view: RequestView) -> tuple[Step, ...]:
    """Template, resource claims, devices, use. Of a claim that pods share nobody can tell that a pod asks for it."""
    given = sum(claim.state in _GIVEN for claim in view.claims)
    used = sum(claim.state is ClaimState.IN_USE for claim in view.claims)
    waits = any(claim.state is ClaimState.WAITING_FOR_READY for claim in view.claims)
    runs = "node prepares the devices, and the pod runs."
    text = _WORDS.get(State(view.row.state), _SHARED_COST if view.shared else _COST)
    first = Step(f"The {view.noun} exists", text, _first(view))
    start = "Start a pod that names it, such as the one below."
    asked = () if view.shared else (_later(view, "A pod asks for it", len(view.claims), start),)
    chosen = f"{start if view.shared else ''} The scheduler chooses a node that has them.".strip()
    return (
        first,
        *asked,
        _later(view, "Devices are allocated", given, chosen),
        _later(view, "In use", used, f"{_MADE_READY} Then the {runs}" if waits else f"The {runs}"),
    )


def commands(view: RequestView) -> tuple[str, ...]:
    """What to type for the same view from a terminal."""
    namespace, name = view.row.namespace, view.row.name
    return (
        f"kubectl -n {namespace} apply -f {name}-{workload_file(view.row.wish)}",
        f"kubectl -n {namespace} get resourceclaims -l {REQUEST_LABEL}={view.row.key}",
        f"kubectl -n {namespace} describe {resource_of(view.row.wish).kind.lower()} {name}",
    )


def _first(view: RequestView) -> Mark:
    if view.exists:
        return Mark.DONE
    return Mark.OPEN if view.row.state == State.SUBMITTING else Mark.OFF


def _later(view: RequestView, title: str, number: int, otherwise: str) -> Step:
    """A step that so many of the request's claims have reached; `otherwise` says what it takes."""
    total = len(view.claims)
    if not number:
        possible = view.exists or view.row.state == State.SUBMITTING or total
        return Step(title, otherwise, Mark.OPEN if possible else Mark.OFF)
    plural = "" if total == 1 else "s"
    if number == total:
        return Step(title, f"{number} claim{plural}", Mark.DONE)
    return Step(title, f"{number} of {total} claim{plural}", Mark.PART)
