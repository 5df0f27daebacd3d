"""What the form says about a wish and the fleet. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from claims.services.fit.stop import Stop
from dra.advice.explanation import FleetExplanation, Miss
from dra.fleet import FleetAnswer


class Outcome(StrEnum):
    """What would become of a pod now."""

    NOW = "now"
    POD_LIMITS = "pod-limits"  # devices are free where the pod itself can't go
    WAIT = "wait"  # it would fit if nothing was in use
    NEVER = "never"  # it would not fit even then
    UNKNOWN = "unknown"  # it would not fit even then, but a pool that could hold the devices is not read in full
    ABORTED = "aborted"  # kube-scheduler's search ends in an error


class Change(StrEnum):
    """Which field of the form a proposal changes."""

    COUNT = "count"
    SHARE = "share"
    MEMORY = "memory"
    PROFILE = "profile"
    CONDITION = "cel"
    DEVICE_CLASS = "class"
    ALTERNATIVE = "alternative"  # one more, of the class `after`
    CONSTRAINT = "constraint"  # left out
    TOLERATION = "toleration"  # one more


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A wish that differs in one entry and fits, found by asking. `query` is its address.

    `alternative` is the number of the alternative that is changed, 0 for the first choice and what holds for all.
    """

    change: Change
    before: str
    after: str
    alternative: int = 0
    nodes: int
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The answer at a revision. `matching` and `free` count devices over the fleet, `ahead` waiting claims.

    `serving` is the choice that the best node would serve, 0 for the first; `alone` says on how many nodes each choice
    fits by itself, nothing where there is but one. `made_ready` says that the best node has no such devices that are
    ready: the pod waits for one (KEP-5007). `idle` answers for the fleet with nothing in use, if that was asked.
    `unread` is the pool that leaves a doubt, where one decides.
    `stop` is what ends kube-scheduler's search, now or, where the wish can never fit, with nothing in use; else None.
    `pod_fault` says why the pod's own needs could not be read and are left out, "" where they were.
    """

    outcome: Outcome
    answer: FleetAnswer
    explanation: FleetExplanation
    matching: int
    free: int
    ahead: int
    serving: int
    alone: tuple[int, ...]
    made_ready: bool
    idle: FleetAnswer | None
    unread: Miss | None
    stop: Stop | None
    proposals: tuple[Proposal, ...]
    pod_fault: str
    revision: int
    as_of: datetime | None
