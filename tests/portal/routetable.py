"""The form of a row of the route table: a route, and what each of six people gets from it.

Every folder of tests may hold a `route_table.py` with a tuple ROWS; `test_routes.py` finds them all, and fails for a
route that no row names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

PEOPLE = ("alice", "bob", "charlie", "operator", "guest", "anonymous")


def nothing() -> dict[str, Any]:
    """A route that needs no rows and no arguments."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A route by its name, such as `gpuinventory:device`, and the status for each person.

    Alice's things are asked for; Bob is of her team, Charlie of another, the guest of none. `arrange` makes the rows
    that the route needs, and gives the arguments of its address: it runs when all people exist.
    """

    route: str
    alice: int
    bob: int
    charlie: int
    operator: int
    guest: int
    anonymous: int
    arrange: Callable[[], dict[str, Any]] = nothing
    method: Literal["get", "post"] = "get"
    data: dict[str, str] = field(default_factory=dict)

    def expected(self, person: str) -> int:
        """The status for that person."""
        status: int = getattr(self, person)
        return status
