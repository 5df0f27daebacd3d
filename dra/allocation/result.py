"""What allocation answers: the results as the scheduler writes them, a refusal, or its error. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dra.names import DeviceID
from dra.objects import AllocationResult

type FailureKind = Literal["fatal", "node", "panic", "budget"]
"""fatal: the scheduler gives the pod up on all nodes and retries. node: it goes on with other nodes. panic: its code
would crash. budget: the scheduler's own search would not end either, and ours was stopped at `search.WORK_BUDGET`."""

type FailureCode = Literal[
    "selector",
    "pool_incomplete",
    "pool_invalid",
    "too_many_devices",
    "class_missing",
    "constraint",
    "capacity",
    "node_selector",
    "feature_disabled",
    "malformed",
    "budget",
]


@dataclass(frozen=True, slots=True)
class SchedulerTimesOut:
    """kube-scheduler's exhaustive search likely runs into its limit of 10 s per node here: it then aborts the pod.

    `steps` estimates how often it would enter its search function, `seconds` how long that takes; both are rough.
    """

    steps: int
    seconds: float


type Warnings = tuple[SchedulerTimesOut, ...]


@dataclass(frozen=True, slots=True)
class Allocated:
    """It fits: one result per ResourceClaim, in their order. Share IDs are ""; whoever writes them makes them."""

    results: tuple[AllocationResult, ...]
    warnings: Warnings = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """It does not fit on this node now. `dra.advice.explain` says why."""

    warnings: Warnings = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The scheduler's error, with its text. The other fields say what it concerns, "" or None where nothing does.

    `resource_claim` is `namespace/name`, `device_request` the name of the request as the error means it, `selector` the
    number of a selector in its list, `device_class` the class where the selector is the class's.
    """

    kind: FailureKind
    code: FailureCode
    message: str
    resource_claim: str = ""
    device_request: str = ""
    device_class: str = ""
    selector: int | None = None
    device: DeviceID | None = None
    warnings: Warnings = ()


type Answer = Allocated | Refused | Failed
