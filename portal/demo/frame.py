"""What the frame of a demo's page shows beside the portal's own: who one may be, the time, a hint."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from portal.demo import clock, hints
from portal.demo.hints import HINTS, Hint
from portal.demo.people import PARTS, Part
from portal.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Context of `portal/demo/_banner.html` and of the menu. `rate` is None where the simulator does not say it."""

    part: Part | None
    rate: int | None
    hint: Hint | None
    parts: tuple[Part, ...] = PARTS

    @property
    def rates(self) -> tuple[tuple[int, str], ...]:
        """Every rate with its word."""
        return tuple(clock.RATES.items())

    @property
    def hints(self) -> int:
        """How many hints there are."""
        return len(HINTS)


def frame(request: HttpRequest) -> Frame:
    """One call to the simulator."""
    name = request.user.username if isinstance(request.user, User) else ""
    part = next((part for part in PARTS if part.username == name), None)
    return Frame(part=part, rate=clock.rate(), hint=hints.current(request))
