"""Deployments and ReplicaSets: pods as many as wanted, new templates rolled out, status written. Pure.

In outline what kubernetes/pkg/controller/{deployment,replicaset} do. A new template replaces all pods at once: rolling
updates and revisions are not done. StatefulSets, Jobs and autoscalers are kept, and an event says that they do not run.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from dra.errors import DraError
from simulator import kinds
from simulator.hands import Hands, Told, controller_of, is_going, is_over, owned_by, with_condition
from simulator.kinds import Kind
from simulator.store import Object

_HASH: Final = "pod-template-hash"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # apimachinery/pkg/util/rand, as hashes in names are spelt
_NOT_RUN: Final = (kinds.STATEFUL_SET, kinds.JOB, kinds.AUTOSCALER)


class WorkloadController:
    """All controllers of workloads in one."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._told: set[tuple[str, str]] = set()  # uids and what was said of them, to say it once

    def sync(self) -> None:
        """Bring workloads and their pods together once."""
        for deployment in self._hands.store.all(kinds.DEPLOYMENT):
            if not is_going(deployment):
                self._try_deployment(deployment)
        for replica_set in self._hands.store.all(kinds.REPLICA_SET):
            if not is_going(replica_set):
                self._sync_replica_set(replica_set)
        for kind in _NOT_RUN:
            for workload in self._hands.store.all(kind):
                self._say_not_run(kind, workload)

    def _say_not_run(self, kind: Kind, workload: Object) -> None:
        message = f"the simulator keeps a {kind.kind} and does not run it: only Pods and Deployments run here"
        self._tell_once(workload, Told("simulator", "NotRunHere", message))

    def _tell_once(self, workload: Object, told: Told) -> None:
        said = (workload["metadata"]["uid"], told.message)
        if said not in self._told:
            self._told.add(said)
            self._hands.tell(workload, told)

    def _try_deployment(self, deployment: Object) -> None:
        """What a real API server would have refused is told, and stops no other workload."""
        try:
            self._sync_deployment(deployment)
        except DraError as error:
            self._tell_once(deployment, Told("deployment-controller", "FailedSync", str(error)))

    def _sync_deployment(self, deployment: Object) -> None:
        sets = [
            each
            for each in self._hands.store.all(kinds.REPLICA_SET, deployment["metadata"]["namespace"])
            if controller_of(each["metadata"]) == deployment["metadata"]["uid"]
        ]
        mark = _hash(deployment["spec"]["template"])
        newest = next((each for each in sets if each["metadata"]["labels"].get(_HASH) == mark), None)
        if newest is None:
            newest = self._hands.create(kinds.REPLICA_SET, _replica_set(deployment, mark))
        else:
            sets.remove(newest)
        self._roll(deployment, newest, sets)
        self._write_deployment(deployment, newest, sets)

    def _roll(self, deployment: Object, newest: Object, older: list[Object]) -> None:
        """End the pods of old templates, then make those of the new one, as `type: Recreate` does."""
        for each in older:
            self._scale(each, 0)
        ended = not any(_count(each, "replicas") for each in older)
        self._scale(newest, int(deployment["spec"].get("replicas", 1)) if ended else 0)

    def _scale(self, replica_set: Object, replicas: int) -> None:
        if replica_set["spec"]["replicas"] != replicas:
            self._hands.replace(kinds.REPLICA_SET, replica_set | {"spec": replica_set["spec"] | {"replicas": replicas}})

    def _write_deployment(self, deployment: Object, newest: Object, older: list[Object]) -> None:
        wanted, meta = int(deployment["spec"].get("replicas", 1)), deployment["metadata"]
        every = [self._fresh(each) for each in (newest, *older)]
        ready, available = (sum(_count(each, key) for each in every) for key in ("readyReplicas", "availableReplicas"))
        enough = available >= wanted
        condition = {
            "type": "Available",
            "status": "True" if enough else "False",
            "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
            "lastTransitionTime": self._hands.now,
        }
        counts = {
            "replicas": sum(_count(each, "replicas") for each in every),
            "updatedReplicas": _count(every[0], "replicas"),
            "readyReplicas": ready,
            "availableReplicas": available,
            "unavailableReplicas": max(0, wanted - available),
        }
        kept = {key: value or None for key, value in counts.items()}
        conditions = with_condition(deployment.get("status", {}).get("conditions", []), condition)
        fields = kept | {"observedGeneration": meta["generation"], "conditions": conditions}
        self._hands.set_status(kinds.DEPLOYMENT, deployment, fields)

    def _fresh(self, replica_set: Object) -> Object:
        meta = replica_set["metadata"]
        return self._hands.store.get(kinds.REPLICA_SET, meta["name"], meta["namespace"])

    def _sync_replica_set(self, replica_set: Object) -> None:
        mine = [
            each
            for each in self._hands.store.all(kinds.POD, replica_set["metadata"]["namespace"])
            if controller_of(each["metadata"]) == replica_set["metadata"]["uid"] and not is_over(each)
        ]
        pods = [each for each in mine if not is_going(each)]
        missing = int(replica_set["spec"].get("replicas", 1)) - len(pods)
        for _ in range(missing):
            if not self._make_pod(replica_set):
                break
        for pod in sorted(pods, key=_worth)[: max(0, -missing)]:
            self._hands.delete(pod)
        self._write_replica_set(replica_set, pods)

    def _make_pod(self, replica_set: Object) -> bool:
        """Whether the pod was made; a refusal is told once."""
        meta, template = replica_set["metadata"], replica_set["spec"]["template"]
        own = {
            "generateName": f"{meta['name']}-",
            "namespace": meta["namespace"],
            "labels": template.get("metadata", {}).get("labels", {}),
            "annotations": template.get("metadata", {}).get("annotations", {}),
            "ownerReferences": owned_by(replica_set),
        }
        try:
            pod = self._hands.create(kinds.POD, {"metadata": own, "spec": template["spec"]})
        except DraError as error:
            self._tell_refused(replica_set, str(error))
            return False
        message = f"Created pod: {pod['metadata']['name']}"
        self._hands.tell(replica_set, Told("replicaset-controller", "SuccessfulCreate", message, warning=False))
        return True

    def _tell_refused(self, replica_set: Object, why: str) -> None:
        said = why.partition(" is forbidden: ")[2] or why  # without the generated name, which is another each time
        key = (replica_set["metadata"]["uid"], said)
        if key not in self._told:
            self._told.add(key)
            self._hands.tell(replica_set, Told("replicaset-controller", "FailedCreate", f"Error creating: {why}"))

    def _write_replica_set(self, replica_set: Object, pods: list[Object]) -> None:
        ready = sum(map(is_ready, pods))
        counts = {"replicas": len(pods), "fullyLabeledReplicas": len(pods) or None}
        kept = {"readyReplicas": ready or None, "availableReplicas": ready or None}
        observed = {"observedGeneration": self._fresh(replica_set)["metadata"]["generation"]}
        self._hands.set_status(kinds.REPLICA_SET, self._fresh(replica_set), counts | kept | observed)


def is_ready(pod: Object) -> bool:
    """Whether the kubelet called it ready."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _worth(pod: Object) -> tuple[bool, bool, str]:
    """The order in which pods are given up: those without a node, those not ready, the youngest."""
    return bool(pod["spec"].get("nodeName")), is_ready(pod), _reversed(pod["metadata"]["creationTimestamp"])


def _reversed(text: str) -> str:
    """A text that sorts the other way round."""
    return "".join(chr(0x7F - ord(each)) for each in text)


def _count(replica_set: Object, key: str) -> int:
    return int(replica_set.get("status", {}).get(key, 0))


def _replica_set(deployment: Object, mark: str) -> Object:
    meta, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    labels = template.get("metadata", {}).get("labels", {}) | {_HASH: mark}
    selector = spec["selector"] | {"matchLabels": spec["selector"].get("matchLabels", {}) | {_HASH: mark}}
    own = {
        "name": f"{meta['name']}-{mark}",
        "namespace": meta["namespace"],
        "labels": labels,
        "ownerReferences": owned_by(deployment),
    }
    marked = template | {"metadata": template.get("metadata", {}) | {"labels": labels}}
    return {"metadata": own, "spec": {"replicas": 0, "selector": selector, "template": marked}}


def _hash(template: Object) -> str:
    """Ten letters that follow from the template."""
    digest = sha256(msgspec.json.encode(template, order="sorted")).digest()[:10]
    return "".join(_LETTERS[each % len(_LETTERS)] for each in digest)
