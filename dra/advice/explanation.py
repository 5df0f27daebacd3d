"""What an explanation says, as data: steps with counts, fallen devices with their reasons, warnings, suggestions.

No sentences: every reason is a code with facts (value against limit), so that a catalogue can speak and JSON can carry
it. Names of other people's resource claims and pods stand only in `Holder`; `dra.advice.voice` decides who hears them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from dra.names import ClaimRef, DeviceID
from dra.objects.resourceclaim import ResourceClaim

type Fact = str | int | bool | tuple[str, ...]
type Facts = dict[str, Fact]


class StepKind(StrEnum):
    """The rules that remove devices, in the order they are told."""

    DEVICES = "devices"
    CLASS = "class"
    SELECTOR = "selector"
    TAINT = "taint"
    IN_USE = "in_use"
    COUNTERS = "counters"
    CAPACITY = "capacity"
    CONSTRAINT = "constraint"
    COUNT = "count"


class Code(StrEnum):
    """Why a device fell, or a pool is not looked at. The facts that each one carries stand beside it."""

    POOL_INCOMPLETE = "pool.incomplete"  # pool, reason
    POOL_INVALID = "pool.invalid"  # pool, reason
    FEATURE_OFF = "feature.off"  # gate: the device needs it
    CLASS_MISSING = "class.missing"  # device_class
    SELECTOR_FALSE = "selector.false"  # selector, conjunct, values (text = value), failing (conjuncts in all)
    SELECTOR_ERROR = "selector.error"  # the same, error
    TAINT_NOT_TOLERATED = "taint.not_tolerated"  # taint (key=value:effect), key, value, effect, since where known
    DEVICE_IN_USE = "device.in_use"  # nothing; holders
    COUNTER_SHORT = "counter.short"  # counter_set, counter, needed, left; holders
    CAPACITY_ABSENT = "capacity.absent"  # capacity, requested
    CAPACITY_POLICY = "capacity.policy"  # capacity, needed, rule
    CAPACITY_SHORT = "capacity.short"  # capacity, needed (after rounding), left, value; holders
    CAPACITY_FAULT = "capacity.fault"  # error: the scheduler aborts
    CONSTRAINT_ABSENT = "constraint.absent"  # attribute
    CONSTRAINT_MATCH = "constraint.match"  # attribute, value, needed, found (devices with that value)
    CONSTRAINT_DISTINCT = "constraint.distinct"  # attribute, value, device (the one that has the value already)
    COUNT_SHORT = "count.short"  # needed, found
    COUNT_TOGETHER = "count.together"  # needed, found, beside (device requests that are served before)
    COUNT_OVER_LIMIT = "count.over_limit"  # needed, limit


class WarningCode(StrEnum):
    """What goes beyond "does not fit": the scheduler stops, or may stop, for this wish."""

    # node, error, message, and as far as known device_request, device_class, device, selector:
    SCHEDULER_ABORTS = "scheduler.aborts"  # the pod is placed on no node at all
    NODE_FAILS = "node.fails"  # this node is left out, others are asked
    SEARCH_GAVE_UP = "search.gave_up"  # our own limit: the answer is not known
    SCHEDULER_TIMES_OUT = "scheduler.times_out"  # node, steps, seconds (estimates)
    SELECTOR_MAY_ABORT = "selector.may_abort"  # device_request, device_class, device, devices (count), selector,
    # conjunct, error: met once the devices before it are taken


class Verdict(StrEnum):
    """What the scheduler answers on a node."""

    FITS = "fits"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who has a device, or a part of it: a resource claim and the pods that may use it now (names in its namespace)."""

    resource_claim: ClaimRef
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One reason: a code and its facts, amounts as Kubernetes prints quantities."""

    code: Code
    facts: Facts = field(default_factory=dict)
    holders: tuple[Holder, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal reasons."""
        return self.code, tuple(self.facts.items()), self.holders


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallen:
    """Devices that fell by one reason. On one node `devices` has all `count` of them, over a fleet the first few."""

    count: int
    devices: tuple[DeviceID, ...]
    miss: Miss


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rule: `left` devices stay and `fell` go, so that the step before had left + fell.

    A step that no device reached is not evaluated, which is not the same as passed. `index` counts selectors and
    constraints from 0, as Kubernetes' own messages do; `facts` name the rule (class, expression, attribute, needed).
    """

    kind: StepKind
    index: int = 0
    evaluated: bool
    left: int
    fell: int
    facts: Facts = field(default_factory=dict)
    fallen: tuple[Fallen, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestMiss:
    """The device that came furthest, and every rule that still stands against it."""

    device: DeviceID
    step: StepKind
    misses: tuple[Miss, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """Greater is nearer: fell at a later step, then has fewer rules against it."""
        faults = sum(_faults(miss) for miss in self.misses)
        return tuple(StepKind).index(self.step), -faults


def _faults(miss: Miss) -> int:
    failing = miss.facts.get("failing", 1)
    return failing if isinstance(failing, int) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequestExplanation:
    """The steps of one device request, or of one alternative (`<request>/<subrequest>`) of a resource claim.

    `needed` is the count, for All the number of matching devices (0 over a fleet, where it differs by node).
    """

    resource_claim: str
    device_request: str
    device_class: str
    allocation_mode: str
    needed: int
    steps: tuple[Step, ...]
    nearest_miss: NearestMiss | None

    @property
    def enough(self) -> bool:
        """Whether devices are left after the last step."""
        return self.steps[-1].evaluated and self.steps[-1].left > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceWarning:
    """Something the person will meet beyond this node's answer."""

    code: WarningCode
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the resource claims fit, or do not fit, on one node. `pools` are those whose devices are not looked at."""

    node: str
    verdict: Verdict
    device_requests: tuple[DeviceRequestExplanation, ...]
    pools: tuple[Miss, ...] = ()
    warnings: tuple[AdviceWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetExplanation:
    """The same steps summed over all nodes, and on how many nodes each verdict falls.

    A device that several nodes reach is counted on each of them.
    """

    nodes: dict[Verdict, int]
    device_requests: tuple[DeviceRequestExplanation, ...]
    pools: tuple[Miss, ...] = ()
    warnings: tuple[AdviceWarning, ...] = ()


class ChangeCode(StrEnum):
    """What a suggestion changes. Facts of all: resource_claim, device_request where one is meant, from, to, nodes."""

    COUNT = "change.count"
    CAPACITY = "change.capacity"  # capacity
    LITERAL = "change.literal"  # selector, conjunct, expression (the new one)
    DEVICE_CLASS = "change.device_class"
    CONSTRAINT = "change.constraint"  # attribute; "to" is empty: dropped
    TOLERATION = "change.toleration"  # taint, effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A change after which the resource claims fit on at least one node, as found by allocating them."""

    code: ChangeCode
    facts: Facts
    resource_claims: tuple[ResourceClaim, ...]
