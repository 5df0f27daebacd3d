"""How far a GPU request has come, as a checklist from the template to a running pod. Pure words over a RequestView."""

from __future__ import annotations

from dataclasses import dataclass

from claims.lifecycle import State
from claims.manifests import REQUEST_LABEL
from claims.selectors import RequestView
from gpuinventory.claimstate import ClaimState

_GIVEN = frozenset({ClaimState.ALLOCATED, ClaimState.IN_USE, ClaimState.PREPARE_FAILED, ClaimState.DEVICE_UNHEALTHY})

_WORDS = {
    State.SUBMITTING: "The API server's answer is not known yet. This page says so when it is.",
    State.NOT_CREATED: "The cluster was asked and has no such template. Press Again to ask once more.",
    State.CREATED: "It costs nothing until a pod uses it.",
    State.SEEN: "It costs nothing until a pod uses it.",
    State.WITHDRAWN: "It was deleted through the portal.",
    State.GONE: "It was deleted in another way than through this portal.",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `done` is None for one that can't be reached any more."""

    title: str
    text: str
    done: bool | None

    @property
    def glyph(self) -> str:
        """Its mark, never without the word beside it."""
        return {True: "✓", False: "○", None: "\N{EN DASH}"}[self.done]

    @property
    def word(self) -> str:
        """Its state as a word."""
        return {True: "done", False: "to come", None: "not to come"}[self.done]

    @property
    def css(self) -> str:
        """The class that colours it."""
        return {True: "done", False: "open", None: "off"}[self.done]


def steps(view: RequestView) -> tuple[Step, ...]:
    """Template, resource claims, devices, use; counts where there are several claims."""
    made = len(view.claims)
    given = sum(claim.state in _GIVEN for claim in view.claims)
    used = sum(claim.state is ClaimState.IN_USE for claim in view.claims)
    return (
        Step("The template exists", _WORDS[State(view.row.state)], _first(view)),
        Step(
            "A pod asks for it",
            _of(made, made, "claim", "Start a pod that names it, such as the one below."),
            _later(view, made),
        ),
        Step(
            "Devices are allocated",
            _of(given, made, "claim", "The scheduler chooses a node that has them."),
            _later(view, given),
        ),
        Step(
            "In use", _of(used, made, "claim", "The node prepares the devices, and the pod runs."), _later(view, used)
        ),
    )


def commands(view: RequestView) -> tuple[str, ...]:
    """What to type for the same view from a terminal."""
    namespace, name = view.row.namespace, view.row.name
    return (
        f"kubectl -n {namespace} apply -f {name}-pod.yaml",
        f"kubectl -n {namespace} get resourceclaims -l {REQUEST_LABEL}={view.row.key}",
        f"kubectl -n {namespace} describe resourceclaimtemplate {name}",
    )


def _first(view: RequestView) -> bool | None:
    if view.exists:
        return True
    return False if view.row.state == State.SUBMITTING else None


def _later(view: RequestView, number: int) -> bool | None:
    if number:
        return True
    return False if view.exists or view.row.state == State.SUBMITTING else None


def _of(number: int, total: int, noun: str, otherwise: str) -> str:
    if not number:
        return otherwise
    return f"{number} {noun}{'' if number == 1 else 's'}" if number == total else f"{number} of {total} {noun}s"
