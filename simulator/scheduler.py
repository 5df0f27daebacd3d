"""The scheduler: pods that wait come to nodes, with their ResourceClaims allocated by `dra.allocation`. Pure.

Filters, queue order, what is written and the words are kube-scheduler's (1.37.2); of its scores it has those of
prioritized lists and of the least allocated node. It preempts nobody and knows no spread, affinity between pods, ports
or volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra.allocation import Allocated, Answer, Failed, Snapshot, allocate
from dra.errors import DraError
from dra.extended import SpecialClaim, is_served_name, serving_classes, special_claim
from dra.fleet.wish import PodNeeds
from dra.objects import AllocationResult, DeviceClaim, Node, ObjectMeta, ResourceClaim, ResourceClaimSpec
from dra.objects.nodeselector import matches
from dra.quantity import Quantity
from simulator import kinds
from simulator.claims import claims_of
from simulator.hands import SCHEDULER, Hands, Told, controller_of, is_going, is_over, with_condition
from simulator.placement import (
    Rejection,
    fullness,
    needs_of,
    rejection,
    said_by_nodes,
    said_of_all,
    usage_of,
    without_served,
)
from simulator.reservation import Reservation, bind, deallocate, is_special, reserve, unreserve
from simulator.snapshots import Fleet, read
from simulator.store import Object
from simulator.waits import NotReadyError, Waits

_PLUGIN: Final = 'running "DynamicResources" filter plugin: '


class _UnschedulableError(DraError):
    """The pod stays; the text is the scheduler's message."""

    reason = "Unschedulable"


class _AttemptError(_UnschedulableError):
    """The scheduler's own error, which ends the attempt."""

    reason = "SchedulerError"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pod:
    """One pod on its way: its claims, those of them that are not allocated, and what it asks besides."""

    object: Object
    needs: PodNeeds
    claims: tuple[Object, ...]
    waiting: tuple[ResourceClaim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A node that takes the pod, with what was found there."""

    node: str
    rank: tuple[int, float, str]
    results: tuple[AllocationResult, ...] = ()
    special: SpecialClaim | None = None


class Scheduler:
    """One scheduler. A pod that stayed is tried again after the next change that may help it.

    `seconds` reads the clock by which devices have to become ready.
    """

    def __init__(self, hands: Hands, seconds: Callable[[], float]) -> None:
        self._hands = hands
        self._waits = Waits(hands, seconds)
        self._fleet = Fleet(hands.store)
        self._tried: dict[str, int] = {}

    def due(self) -> list[Object]:
        """The pods to try, highest priority first, then the oldest."""
        return sorted(filter(self._is_due, self._hands.store.all(kinds.POD)), key=self._turn)

    def schedule(self, pod: Object) -> None:
        """Try one pod once; nothing where it changed in the meantime so that it is not due."""
        found = self._hands.store.find(kinds.POD, pod["metadata"]["name"], pod["metadata"]["namespace"])
        if found is None or not self._is_due(found):
            return
        pod = found
        self._tried[pod["metadata"]["uid"]] = self._fleet.chances
        try:
            self._place(self._read(pod))
        except _UnschedulableError as stays:
            self._say_why(pod, stays)
        except DraError as error:  # a pod that a real API server would have refused, such as with a wrong affinity
            self._say_why(pod, _AttemptError(str(error)))

    def bind_ready(self) -> None:
        """The second half of PreBind: bind the pods whose devices became ready, try those anew whose devices failed."""
        for pod, node in self._waits.now():
            try:
                if self._waits.is_ready(pod):
                    self._waits.end(pod)
                    bind(self._hands, pod, node)
            except NotReadyError as error:
                self._waits.end(pod)
                del self._tried[pod["metadata"]["uid"]]
                self._undo(pod, error)

    def _undo(self, pod: Object, error: DraError) -> None:
        """The end of a binding cycle that failed."""
        unreserve(self._hands, pod)
        self._say_why(pod, _AttemptError(f'running PreBind plugin "DynamicResources": {error}'))

    def _is_due(self, pod: Object) -> bool:
        """Whether the pod waits for a node and something changed since the last try."""
        spec = pod["spec"]
        if pod["metadata"]["uid"] in self._waits:
            return False
        if spec.get("nodeName") or is_going(pod) or is_over(pod) or spec.get("schedulingGates"):
            return False
        if spec.get("schedulerName", SCHEDULER) != SCHEDULER or not self._has_its_claims(pod):
            return False
        return self._tried.get(pod["metadata"]["uid"]) != self._fleet.chances

    def _has_its_claims(self, pod: Object) -> bool:
        """PreEnqueue: each entry has its claim, which stays and, where it was made for a pod, was for this one."""
        claims = claims_of(self._hands, pod)
        made = {each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses", ())}
        entries = pod["spec"].get("resourceClaims", ())
        for claim in claims:
            meta = claim["metadata"]
            if is_going(claim) or (meta["name"] in made and controller_of(meta) != pod["metadata"]["uid"]):
                return False
        return len(claims) >= len(entries)

    def _turn(self, pod: Object) -> tuple[int, str, str]:
        meta = pod["metadata"]
        return -self._priority(pod), meta["creationTimestamp"], f"{meta['namespace']}/{meta['name']}"

    def _priority(self, pod: Object) -> int:
        named = self._hands.store.find(kinds.PRIORITY_CLASS, pod["spec"].get("priorityClassName", ""))
        return int(pod["spec"].get("priority", named["value"] if named else 0))

    def _read(self, pod: Object) -> _Pod:
        """PreFilter: what has to be known of the pod."""
        claims = tuple(claims_of(self._hands, pod))
        free = (each for each in claims if not each.get("status", {}).get("allocation"))
        waiting = tuple(read(kinds.RESOURCE_CLAIM, each) for each in free)
        for claim in waiting:
            self._hold_classes(claim)
        return _Pod(object=pod, needs=needs_of(pod), claims=claims, waiting=waiting)

    @property
    def _nodes(self) -> int:
        return len(self._hands.store.all(kinds.NODE))

    def _hold_classes(self, claim: ResourceClaim) -> None:
        """_UnschedulableError where a request names a class that is missing (`validateDeviceClass`)."""
        for request in claim.spec.devices.requests:
            named = [(request.name, request.exactly)] if request.exactly else []
            named += [(f"{request.name}/{each.name}", each) for each in request.first_available]
            for name, asked in named:
                if self._hands.store.find(kinds.DEVICE_CLASS, asked.device_class_name) is None:
                    why = f"request {name}: device class {asked.device_class_name} does not exist"
                    raise _UnschedulableError(said_of_all(self._nodes, why))

    def _place(self, pod: _Pod) -> None:
        """Filter, score, and write the choice down."""
        snapshot = self._fleet.snapshot()
        answers = list(self._answers(pod, snapshot))
        choices = [each for each in answers if isinstance(each, _Choice)]
        if not choices:
            rejections = [each for each in answers if isinstance(each, Rejection)]
            raise _UnschedulableError(said_by_nodes(rejections, self._make_room(pod, rejections)))
        self._settle(pod, min(choices, key=lambda each: each.rank))

    def _make_room(self, pod: _Pod, rejections: Sequence[Rejection]) -> str:
        """DynamicResources' PostFilter: give an allocation up that does not serve the pod; gives the words for it."""
        names = {name for each in rejections for name in each.unusable}
        unusable = [claim for claim in pod.claims if claim["metadata"]["name"] in names]
        return "deallocation of ResourceClaim completed" if deallocate(self._hands, pod.object, unusable) else ""

    def _answers(self, pod: _Pod, snapshot: Snapshot) -> Iterator[_Choice | Rejection]:
        usage = usage_of(self._hands.store.all(kinds.POD), self._waits.nodes)
        classes = tuple(snapshot.classes.values())
        served = frozenset(serving_classes(classes)) if _asks_served(pod.needs) else frozenset()
        for name in sorted(snapshot.nodes):
            node, used = snapshot.nodes[name], usage.get(name, {})
            refused = rejection(without_served(pod.needs, node, served), node, used)
            yield refused or self._on_node(pod, snapshot, node, used)

    def _on_node(self, pod: _Pod, snapshot: Snapshot, node: Node, used: Mapping[str, Quantity]) -> _Choice | Rejection:
        """DynamicResources' Filter on one node."""
        if unusable := tuple(each["metadata"]["name"] for each in pod.claims if not self._serves(each, node)):
            return Rejection(("resourceclaim not available on the node",), unusable=unusable)
        special = _special(pod, snapshot, node)
        wanted = (*pod.waiting, _claim(pod, special)) if special else pod.waiting
        answer = allocate(snapshot, node.metadata.name, wanted) if wanted else Allocated(())
        if not isinstance(answer, Allocated):
            return _refused(answer, node.metadata.name)
        rank = (_alternatives(wanted, answer), fullness(pod.needs, node, used), node.metadata.name)
        return _Choice(node=node.metadata.name, rank=rank, results=answer.results, special=special)

    def _serves(self, claim: Object, node: Node) -> bool:
        """Whether what is allocated can be used from the node; yes for what is not allocated."""
        known = read(kinds.RESOURCE_CLAIM, claim)
        selector = known.status.allocation and known.status.allocation.node_selector
        if selector is not None and not matches(selector, node.metadata.name, node.metadata.labels):
            return False
        return not self._waits.is_hopeless(known)

    def _settle(self, pod: _Pod, choice: _Choice) -> None:
        names = [claim.metadata.name for claim in pod.waiting]
        wanted = Reservation(
            pod=pod.object,
            node=choice.node,
            claims=pod.claims,
            results=dict(zip(names, choice.results, strict=False)),
            special=choice.special,
            special_result=choice.results[-1] if choice.special else None,
        )
        try:
            reserved = reserve(self._hands, wanted)
        except DraError as error:
            self._undo(pod.object, error)
            return
        if not self._waits.begin(reserved, choice.node):
            bind(self._hands, reserved, choice.node)

    def _say_why(self, pod: Object, stays: _UnschedulableError) -> None:
        pod = self._hands.store.get(kinds.POD, pod["metadata"]["name"], pod["metadata"]["namespace"])
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": stays.reason,
            "message": str(stays),
            "observedGeneration": pod["metadata"]["generation"],
            "lastProbeTime": None,
            "lastTransitionTime": self._hands.now,
        }
        conditions = with_condition(pod["status"].get("conditions", []), condition)
        self._hands.set_status(kinds.POD, pod, {"conditions": conditions, "nominatedNodeName": None})
        self._hands.tell(pod, Told(SCHEDULER, "FailedScheduling", str(stays)))


def _asks_served(needs: PodNeeds) -> bool:
    return any(is_served_name(name) for name in needs.requests)


def _special(pod: _Pod, snapshot: Snapshot, node: Node) -> SpecialClaim | None:
    """What devices have to give for the pod's extended resources there; None where nothing, or it was given already."""
    if not _asks_served(pod.needs) or any(map(is_special, pod.claims)):
        return None
    found = special_claim(read(kinds.POD, pod.object), snapshot.classes.values(), node.status.allocatable)
    return found if found.device_requests else None


def _claim(pod: _Pod, special: SpecialClaim) -> ResourceClaim:
    meta = ObjectMeta(name="<extended-resources>", namespace=pod.object["metadata"]["namespace"])
    return ResourceClaim(metadata=meta, spec=ResourceClaimSpec(devices=DeviceClaim(requests=special.device_requests)))


def _refused(answer: Answer, node: str) -> Rejection:
    """The node's word; _AttemptError where the scheduler gives the pod up on all nodes."""
    if not isinstance(answer, Failed):
        return Rejection(("cannot allocate all claims",))
    if answer.kind == "node":
        return Rejection((answer.message,))
    late = f"node {node}: timed out trying to allocate devices"
    raise _AttemptError(_PLUGIN + (late if answer.kind == "budget" else answer.message))


def _alternatives(claims: tuple[ResourceClaim, ...], answer: Allocated) -> int:
    """How far down their lists of alternatives the claims were served: less is better (DynamicResources' Score)."""
    rank = 0
    for claim, result in zip(claims, answer.results, strict=True):
        given = {each.request for each in result.devices.results}
        for request in claim.spec.devices.requests:
            names = [f"{request.name}/{each.name}" for each in request.first_available]
            rank += next((index for index, name in enumerate(names) if name in given), 0)
    return rank
