"""What our engine's answer has to be, whatever the oracle says: one that the independent checker accepts.

And where the oracle ran out of time: an answer nevertheless, with the warning that the scheduler will not end.
"""

from __future__ import annotations

import msgspec

from dra.allocation.check import violations
from dra.objects import AllocationResult
from tests.oracle import ours
from tests.oracle.asking import Json


def wrong_in_itself(question: Json, here: Json) -> str | None:
    """What the checker of results has against our answer, in one line."""
    if not here.get("allocations"):
        return None
    snapshot, claims = ours.read(question)
    results = msgspec.convert(here["allocations"], tuple[AllocationResult, ...])
    found = violations(snapshot, question["node"]["metadata"]["name"], claims, results)
    return f"the checker refuses {here['allocations']}: {found}" if found else None


def wrong_at_timeout(here: Json) -> str | None:
    """What is wrong with our answer to a question that takes the scheduler more than its 10 seconds, in one line."""
    if here.get("errorKind") == "crash":
        return f"crash: {here['error']}"
    if not here.get("warnings"):
        return "the oracle ran out of time, and no warning said so"
    return None
