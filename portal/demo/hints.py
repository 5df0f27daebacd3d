"""Five hints for who opens the demo for the first time. Which one is shown is kept in the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest

_KEY: Final = "demo_hint"


@dataclass(frozen=True, slots=True)
class Hint:
    """One hint: what to look at, and the page where it is."""

    number: int
    text: str
    path: str
    label: str


_TEXTS: Final = (
    ("Press your name or letter at the top right to be someone else: a lead, the operator, a guest.", "/", "Home"),
    ("Choose a class and read under Fit whether it fits now, and why.", "/request/", "Request a GPU"),
    ("See for each GPU class how much can be had at this moment.", "/capacity/", "Capacity"),
    ("Set the time to ×10 and watch claims come, wait and end.", "/claims/", "Claims"),  # noqa: RUF001
    ("Be olga, the operator, to see every device and who holds it.", "/devices/", "Devices"),
)
HINTS: Final = tuple(Hint(number, *rest) for number, rest in enumerate(_TEXTS, 1))


def current(request: HttpRequest) -> Hint | None:
    """The hint to show; None once they were dismissed."""
    number = request.session.get(_KEY, 1)
    return next((hint for hint in HINTS if hint.number == number), None)


def choose(request: HttpRequest, number: int) -> None:
    """Show that hint from now on; a number that none has shows none."""
    request.session[_KEY] = number
