"""Who plays which part in a demo. `manage.py seeddemo` makes these people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A person of the demo and what they are."""

    username: str
    role: str


PARTS = (
    Part("bob", "developer, ml-team"),
    Part("alice", "lead, ml-team"),
    Part("charlie", "developer, inference-team"),
    Part("olga", "operator"),
    Part("gus", "guest"),
)
FIRST = PARTS[0].username  # who one is at the first visit
