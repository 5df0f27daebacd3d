"""The life of a GpuRequest: states, events and transitions as one table. Nothing else may change a state.

Pure. A request is about one object: a ResourceClaimTemplate, or the ResourceClaim that pods share. What becomes of the
resource claims is derived from the cluster each time and never stored.

    submitting   the row is written, the POST is not yet known to have worked
    not created  the cluster was read, and nothing is there
    created      the API server answered that the object exists
    seen         the read model has it too; from here on its absence means that it is gone
    withdrawn    deleted by its author through the portal
    gone         deleted in another way
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a request stands."""

    SUBMITTING = "submitting"
    NOT_CREATED = "not created"
    CREATED = "created"
    SEEN = "seen"
    WITHDRAWN = "withdrawn"
    GONE = "gone"


class Event(StrEnum):
    """What can happen to a request."""

    SUBMIT = "submit"  # the person sent it (again)
    CONFIRM = "confirm"  # the API server has the object, and it is ours
    SEE = "see"  # the read model has it
    MISS = "miss"  # the cluster was asked, and has it not
    WITHDRAW = "withdraw"  # the API server deleted it for its author


# A late CONFIRM after MISS is real: the POST was still on its way when the cluster was read.
TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.SUBMITTING, Event.SUBMIT): State.SUBMITTING,
    (State.SUBMITTING, Event.CONFIRM): State.CREATED,
    (State.SUBMITTING, Event.MISS): State.NOT_CREATED,
    (State.NOT_CREATED, Event.SUBMIT): State.SUBMITTING,
    (State.NOT_CREATED, Event.CONFIRM): State.CREATED,
    (State.CREATED, Event.CONFIRM): State.CREATED,
    (State.CREATED, Event.SEE): State.SEEN,
    (State.CREATED, Event.MISS): State.GONE,
    (State.CREATED, Event.WITHDRAW): State.WITHDRAWN,
    (State.SEEN, Event.CONFIRM): State.SEEN,
    (State.SEEN, Event.SEE): State.SEEN,
    (State.SEEN, Event.MISS): State.GONE,
    (State.SEEN, Event.WITHDRAW): State.WITHDRAWN,
}

START = State.SUBMITTING
FINAL = frozenset({State.WITHDRAWN, State.GONE})
EXISTING = frozenset({State.CREATED, State.SEEN})  # the object is there, as far as we know


class ImpossibleMoveError(Exception):
    """An event came that its state does not know: a fault of ours."""


def move(state: State, event: Event) -> State:
    """The state after the event; ImpossibleMoveError where the table has no such row."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ImpossibleMoveError(f"a request that is {state} can't {event}") from None


def can(state: State, event: Event) -> bool:
    """Whether the table has a row for it."""
    return (state, event) in TRANSITIONS
