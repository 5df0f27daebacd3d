"""The moments between two deeds, at which a process may die and another one has to go on.

Each is an audit event of Python (sys.audit), which costs next to nothing and is nobody's business but of those who look
at crashes: a hook can count the boundaries, or stop the process exactly at one.
"""

from __future__ import annotations

import sys

EVENT = "nodedriver.boundary"


def boundary(subject: str, before: str) -> None:
    """Everything before is done, and `before` is about to be done for that claim (its uid) or card (its address)."""
    sys.audit(EVENT, subject, before)
