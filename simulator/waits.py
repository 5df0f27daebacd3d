"""Pods whose node is chosen and whose devices are being made ready, and for how long they wait. Pure.

As DynamicResources' PreBind waits for binding conditions (KEP-5007; pkg/scheduler/framework/plugins/dynamicresources,
1.37.2). Its time is the actors': it stands still with them, and goes as fast. It binds nothing and takes nothing back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dra.errors import DraError
from dra.objects import ResourceClaim
from dra.readiness import unready, waits_for_devices
from simulator import kinds
from simulator.claims import claims_of
from simulator.hands import SCHEDULER, Hands, Told, is_going
from simulator.snapshots import read
from simulator.store import Object

TIMEOUT_SECONDS: Final = 600.0  # bindingTimeout of DynamicResourcesArgs
_TIMED_OUT: Final = "device binding timeout: "


class NotReadyError(DraError):
    """The devices will not become ready, in the scheduler's words."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A pod that waits for devices on its node; the names of its claims. `end` is when the scheduler gives it up."""

    pod: Object
    node: str
    claims: tuple[str, ...]
    end: float


class Waits:
    """All such pods. `seconds` reads the clock."""

    def __init__(self, hands: Hands, seconds: Callable[[], float]) -> None:
        self._hands, self._seconds = hands, seconds
        self._waits: dict[str, Wait] = {}
        self._ends: dict[tuple[str, str], float] = {}  # uid of a claim and when it was allocated, to its time-out

    @property
    def nodes(self) -> Mapping[str, str]:
        """Where they will run, by their uids: they take up room there already."""
        return {uid: wait.node for uid, wait in self._waits.items()}

    def __contains__(self, uid: str) -> bool:
        """Whether the pod of that uid waits."""
        return uid in self._waits

    def begin(self, pod: Object, node: str) -> bool:
        """Wait with this pod; False where none of its devices has to be waited for."""
        claims = [read(kinds.RESOURCE_CLAIM, each) for each in claims_of(self._hands, pod)]
        late = [each for each in claims if waits_for_devices(each)]
        if not late:
            return False
        end = self._seconds() + TIMEOUT_SECONDS
        self._ends = self._still_allocated()
        for claim in late:
            self._ends.setdefault(_allocated(claim), end)
        pod = self._hands.set_status(kinds.POD, pod, {"nominatedNodeName": node})
        message = f"waiting for binding conditions for device on node {node}"
        self._hands.tell(pod, Told(SCHEDULER, "BindingConditionsPending", message, warning=False))
        self._waits[pod["metadata"]["uid"]] = Wait(pod, node, tuple(each.metadata.name for each in claims), end)
        return True

    def now(self) -> list[tuple[Object, str]]:
        """The pods that wait, as they are now, with their nodes; those that are gone or going are forgotten."""
        found = [(self._present(wait.pod), wait.node) for wait in self._waits.values()]
        here = [(pod, node) for pod, node in found if pod is not None]
        uids = {pod["metadata"]["uid"] for pod, _ in here}
        self._waits = {uid: wait for uid, wait in self._waits.items() if uid in uids}
        return here

    def end(self, pod: Object) -> None:
        """Wait no longer with it."""
        del self._waits[pod["metadata"]["uid"]]

    def is_ready(self, pod: Object) -> bool:
        """Whether all its devices are; NotReadyError where they failed or took too long."""
        wait = self._waits[pod["metadata"]["uid"]]
        if wait.end <= self._seconds():
            raise NotReadyError(f"{_TIMED_OUT}context deadline exceeded")
        return all(self._is_ready(pod["metadata"]["namespace"], name) for name in wait.claims)

    def is_hopeless(self, claim: ResourceClaim) -> bool:
        """Whether its allocation serves nobody: its devices failed, or are not ready in time."""
        found = unready(claim)
        return found is not None and (found.failed is not None or self._is_late(claim))

    def _is_ready(self, namespace: str, name: str) -> bool:
        stored = self._hands.store.find(kinds.RESOURCE_CLAIM, name, namespace)
        if stored is None:
            raise NotReadyError(f'could not find ResourceClaim "{namespace}/{name}"')
        claim: ResourceClaim = read(kinds.RESOURCE_CLAIM, stored)
        if claim.status.allocation is None:
            return False
        found = unready(claim)
        if found is None:
            return True
        if found.failed is not None:
            why = f"reason={found.failed.reason}, message={json.dumps(found.failed.message, ensure_ascii=False)}"
            raise NotReadyError(f"device binding failed: claim={claim.metadata.name}, {why}")
        if self._is_late(claim):
            raise NotReadyError(f"{_TIMED_OUT}claim={claim.metadata.name}")
        return False

    def _is_late(self, claim: ResourceClaim) -> bool:
        return self._ends.get(_allocated(claim), float("inf")) <= self._seconds()

    def _still_allocated(self) -> dict[tuple[str, str], float]:
        claims = (read(kinds.RESOURCE_CLAIM, each) for each in self._hands.store.all(kinds.RESOURCE_CLAIM))
        keys = self._ends.keys() & set(map(_allocated, claims))
        return {key: self._ends[key] for key in keys}

    def _present(self, pod: Object) -> Object | None:
        meta = pod["metadata"]
        found = self._hands.store.find(kinds.POD, meta["name"], meta["namespace"])
        return None if found is None or found["metadata"]["uid"] != meta["uid"] or is_going(found) else found


def _allocated(claim: ResourceClaim) -> tuple[str, str]:
    allocation = claim.status.allocation
    return claim.metadata.uid, (allocation.allocation_timestamp or "") if allocation else ""
