"""One wish after another: what the fit panel says of it, then what the real scheduler does with its files.

The panel's answer is asked of a read model that has just been brought up to date, as a page that is open. A
disagreement is a text with both sides; it is never mended here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from claims.manifests import Files
from claims.services.fit import Fit, Outcome, fit
from claims.services.preview import Preview, preview
from claims.wish import Owner, Wish, Workload, write
from dra.kube.requests import RESOURCE_CLAIMS, path_of
from gpuinventory.selectors import held
from portal.models import User
from tests.cluster.api import Api, ApiError
from tests.cluster.corpuspods import Pods, PodState, PodWatch
from tests.cluster.corpusteam import Member
from tests.cluster.following import Following
from tests.cluster.waiting import wait_until

KEY: Final = "0123456789abcdef"
SECONDS: Final = 8.0  # in which what is said has to come about; the scheduler tries anew after 1, 2 and 4
_STILL: Final = "waiting for"  # a message of a pod whose claim was not made yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What has to become of a workload's pods if the panel is right: how many are bound, where, why not the others."""

    pods: int
    bound: int
    nodes: frozenset[str]
    reason: str

    def met(self, pods: Pods) -> bool:
        """Whether it came so."""
        bound = [pod for pod in pods if pod.node]
        others = [pod for pod in pods if not pod.node]
        return (
            len(pods) == self.pods
            and len(bound) == self.bound
            and all(pod.node in self.nodes for pod in bound)
            and all(pod.reason == self.reason and not pod.message.startswith(_STILL) for pod in others)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One wish that was created. `fault` is "" where the scheduler did what the panel had said."""

    wish: Wish
    query: str
    said: Fit
    files: Files
    pods: Pods
    seconds: float
    fault: str


@dataclass(slots=True)
class Stage:
    """Who asks and who looks. `restarts` counts how often only a scheduler with a fresh memory agreed."""

    user: User
    member: Member
    admin: Api
    pods: PodWatch
    following: Following
    restart_scheduler: Callable[[], None]
    restarts: int = 0
    kept: list[Tried] = field(default_factory=list)

    def seen(self, query: str) -> Preview:
        """The preview of that address, over a read model that has all that happened."""
        self.following.settle(self.admin)
        return preview(user=self.user, query=query, key=KEY)

    def try_out(self, wish: Wish) -> Tried | None:
        """Ask, create, look; None where the form refuses the wish. What was created stays until it is taken back."""
        query = write(wish)
        seen = self.seen(query)
        said = fit(seen, held.current())
        if seen.files is None or said is None:
            return None
        started = time.monotonic()
        pods, fault = self._created(wish, query, seen.files, said)
        took = time.monotonic() - started
        return Tried(wish=wish, query=query, said=said, files=seen.files, pods=pods, seconds=took, fault=fault)

    def _created(self, wish: Wish, query: str, files: Files, said: Fit) -> tuple[Pods, str]:
        """What became of its pods, and what is wrong with that."""
        try:
            self.member.apply(files)
        except ApiError as error:
            return (), f"{query}\n  the form gave files that the cluster refuses: {error}"
        expected = expectation(wish, said)
        pods = self._awaited(wish, expected)
        if expected.bound and not expected.met(pods):
            # A scheduler may remember what no claim holds any more: one that has just read the cluster does not.
            self.restart_scheduler()
            self.restarts += 1
            pods = self._awaited(wish, expected)
        if expected.met(pods):
            return pods, ""
        return pods, "\n  ".join((*_fault(query, said, expected, pods), *self._in_use(expected.nodes)))

    def _awaited(self, wish: Wish, expected: Expected) -> Pods:
        return self.pods.wait(wish.name, lambda now: expected.met(now) or _over(expected, now), SECONDS)

    def _in_use(self, nodes: Iterable[str]) -> Iterator[str]:
        """What claims hold on these nodes, for whoever looks into a disagreement."""
        for claim in self.admin.call("GET", path_of(RESOURCE_CLAIMS))["items"]:
            for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()):
                if result["pool"] in nodes:
                    amounts = result.get("consumedCapacity", "")
                    yield f"{claim['metadata']['name']} holds {result['pool']}/{result['device']} {amounts}"

    def take_back(self, tried: Tried) -> None:
        """It is as if it had not been: its claims are gone too, which the claim controller deletes after the pods."""
        self.member.take_back(tried.files, self.pods)
        name = tried.wish.name
        wait_until(lambda: not any(self._claims_of(name)), f"the end of all claims of {name}", pause=0.02)

    def _claims_of(self, name: str) -> Iterator[str]:
        for claim in self.admin.call("GET", path_of(RESOURCE_CLAIMS))["items"]:
            if claim["metadata"]["name"] == name or claim["metadata"]["name"].startswith(f"{name}-"):
                yield claim["metadata"]["name"]

    def clear(self) -> None:
        """Take back what was kept."""
        while self.kept:
            self.take_back(self.kept.pop())


def expectation(wish: Wish, said: Fit) -> Expected:
    """What the panel's answer means for the pods that the workload makes."""
    pods = pods_of(wish)
    if said.outcome is not Outcome.NOW:
        reason = "SchedulerError" if said.outcome is Outcome.ABORTED else "Unschedulable"
        return Expected(pods=pods, bound=0, nodes=frozenset(), reason=reason)
    total = said.answer.total
    all_fit = wish.owner is Owner.SHARED or not total.bounded
    bound = pods if all_fit else min(pods, total.count)
    return Expected(pods=pods, bound=bound, nodes=frozenset(said.answer.nodes), reason="Unschedulable")


def pods_of(wish: Wish) -> int:
    """How many pods come about: a StatefulSet's next one waits for the first to be ready, which none ever is here."""
    if wish.autoscale:
        return wish.autoscale[0]
    return wish.replicas if wish.workload in {Workload.DEPLOYMENT, Workload.JOB} else 1


def _over(expected: Expected, pods: Pods) -> bool:
    """Whether it can't come so any more."""
    return any(pod.node not in expected.nodes for pod in pods if pod.node) or (
        sum(bool(pod.node) for pod in pods) > expected.bound
    )


def _fault(query: str, said: Fit, expected: Expected, pods: Pods) -> Iterator[str]:
    answer, nodes = said.answer, ", ".join(sorted(expected.nodes))
    yield query
    yield f"panel: {said.outcome}, {answer.total} on {list(answer.nodes)}, {answer.timeouts} time-outs"
    yield from (f"obstacle: {each}" for each in answer.pod_obstacles)
    yield f"expected: {expected.bound} of {expected.pods} bound on [{nodes}], else {expected.reason}"
    yield from _lines(pods)


def _lines(pods: Pods) -> Iterator[str]:
    yield from (_line(pod) for pod in pods) if pods else ("no pod came about",)


def _line(pod: PodState) -> str:
    return f"{pod.name}: bound to {pod.node}" if pod.node else f"{pod.name}: {pod.reason or 'no word'}: {pod.message}"
