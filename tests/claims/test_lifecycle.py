"""The table of a request's life."""

from __future__ import annotations

import pytest

from claims.lifecycle import EXISTING, FINAL, START, TRANSITIONS, Event, ImpossibleMoveError, State, can, move


def test_from_the_form_to_the_end() -> None:
    state = START
    for event in (Event.CONFIRM, Event.SEE, Event.WITHDRAW):
        state = move(state, event)
    assert state is State.WITHDRAWN


def test_an_answer_that_comes_late_still_counts() -> None:
    assert move(move(State.SUBMITTING, Event.MISS), Event.CONFIRM) is State.CREATED


def test_what_was_never_there_can_be_sent_again() -> None:
    assert move(move(State.SUBMITTING, Event.MISS), Event.SUBMIT) is State.SUBMITTING


@pytest.mark.parametrize("state", sorted(FINAL))
@pytest.mark.parametrize("event", Event)
def test_nothing_leaves_a_final_state(state: State, event: Event) -> None:
    assert not can(state, event)
    with pytest.raises(ImpossibleMoveError, match=f"{state} can't {event}"):
        move(state, event)


def test_only_what_exists_can_be_withdrawn() -> None:
    assert {state for state in State if can(state, Event.WITHDRAW)} == EXISTING


def test_every_state_can_be_reached() -> None:
    assert {START, *TRANSITIONS.values()} == set(State)
