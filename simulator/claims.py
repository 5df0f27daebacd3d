"""The controller of ResourceClaims: claims from templates, reservations, deallocation, the end with the pod. Pure.

Follows kubernetes/pkg/controller/resourceclaim/controller.go (1.37.2), without PodGroups and without pods that came to
a node past the scheduler. Level-triggered: `sync` looks at all pods and claims, so a missed change costs nothing.
"""

from __future__ import annotations

from typing import Final

from dra.errors import DraError
from simulator import kinds
from simulator.hands import Hands, Told, controller_of, is_going, is_over, owned_by
from simulator.store import Object

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"
_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
_REPORTER: Final = "resource_claim"


class ClaimController:
    """One controller. What was refused is tried again when a template or quota of the namespace changed."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._refused: dict[str, int] = {}  # uid of a pod to the versions of what refused it

    def sync(self) -> None:
        """Bring pods and claims together once."""
        pods = self._hands.store.all(kinds.POD)
        here = {each["metadata"]["uid"] for each in pods}
        self._refused = {uid: versions for uid, versions in self._refused.items() if uid in here}
        for pod in pods:
            if not is_going(pod) and not is_over(pod) and pod["spec"].get("resourceClaims"):
                self._sync_pod(pod)
        for claim in self._hands.store.all(kinds.RESOURCE_CLAIM):
            self._sync_claim(claim)

    def _sync_pod(self, pod: Object) -> None:
        versions = self._versions(pod["metadata"]["namespace"])
        if self._refused.get(pod["metadata"]["uid"]) == versions:
            return
        self._refused.pop(pod["metadata"]["uid"], None)
        self._make_claims(pod, versions)

    def _versions(self, namespace: str) -> int:
        """Another number after each change of what may refuse a claim: templates and quotas."""
        store = self._hands.store
        near = (*store.all(kinds.RESOURCE_CLAIM_TEMPLATE, namespace), *store.all(kinds.RESOURCE_QUOTA, namespace))
        return sum(int(each["metadata"]["resourceVersion"]) for each in near)

    def _make_claims(self, pod: Object, versions: int) -> None:
        """Make the claims of its entries and name them in its status, as far as none is refused."""
        names = {each["name"]: each["resourceClaimName"] for each in _statuses(pod) if "resourceClaimName" in each}
        before = dict(names)
        for entry in pod["spec"]["resourceClaims"]:
            try:
                if (name := self._claim_name(pod, entry, names)) is not None:
                    names[entry["name"]] = name
            except DraError as error:
                told = Told(_REPORTER, "FailedResourceClaimCreation", f"PodResourceClaim {entry['name']}: {error}")
                self._hands.tell(pod, told)
                self._refused[pod["metadata"]["uid"]] = versions
                break
        if names != before:
            statuses = [{"name": name, "resourceClaimName": names[name]} for name in sorted(names)]
            self._hands.set_status(kinds.POD, pod, {"resourceClaimStatuses": statuses})

    def _claim_name(self, pod: Object, entry: Object, names: dict[str, str]) -> str | None:
        """The claim for an entry with a template, made where it is missing; None for a claim that people make."""
        template = entry.get("resourceClaimTemplateName")
        if template is None:
            return None
        mine = [
            each
            for each in self._hands.store.all(kinds.RESOURCE_CLAIM, pod["metadata"]["namespace"])
            if controller_of(each["metadata"]) == pod["metadata"]["uid"]
        ]
        known = [each for each in mine if each["metadata"]["name"] == names.get(entry["name"])]
        found = known or [each for each in mine if _entry_of(each) == entry["name"]]
        claim = found[0] if found else self._made(pod, entry["name"], template)
        return str(claim["metadata"]["name"])

    def _made(self, pod: Object, entry: str, template_name: str) -> Object:
        namespace = pod["metadata"]["namespace"]
        template = self._hands.store.find(kinds.RESOURCE_CLAIM_TEMPLATE, template_name, namespace)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise DraError(f'resource claim template "{template_name}": {missing}')
        own = template["spec"].get("metadata", {})
        meta = {
            "generateName": f"{pod['metadata']['name']}-{entry}-",
            "namespace": namespace,
            "annotations": own.get("annotations", {}) | {_POD_CLAIM: entry},
            "ownerReferences": owned_by(pod),
            **({"labels": own["labels"]} if "labels" in own else {}),
        }
        try:
            return self._hands.create(kinds.RESOURCE_CLAIM, {"metadata": meta, "spec": template["spec"]["spec"]})
        except DraError as error:
            raise DraError(f"create ResourceClaim : {error}") from error  # its name is empty there, upstream too

    def _sync_claim(self, claim: Object) -> None:
        """Drop consumers that are gone, deallocate with the last of them, delete what its pod no longer needs."""
        status = claim.get("status", {})
        reserved = status.get("reservedFor", [])
        remaining = [each for each in reserved if self._still_needs(claim, each)]
        ended = not remaining and (bool(reserved) or is_going(claim))
        if len(remaining) < len(reserved) or (ended and status.get("allocation")):
            freed = {"allocation": None, "devices": None} if ended else {}
            claim = self._hands.set_status(kinds.RESOURCE_CLAIM, claim, freed | {"reservedFor": remaining or None})
        if ended and FINALIZER in claim["metadata"].get("finalizers", ()):
            claim = without_finalizer(self._hands, claim)
        owner = self._owner(claim)
        if not remaining and owner is not None and _is_done(owner) and not is_going(claim):
            self._hands.delete(claim)

    def _still_needs(self, claim: Object, reference: Object) -> bool:
        """Whether a consumer is there; consumers of other kinds than pods are never dropped."""
        if reference.get("apiGroup") or reference["resource"] != "pods":
            return True
        pod = self._hands.store.find(kinds.POD, reference["name"], claim["metadata"]["namespace"])
        return pod is not None and pod["metadata"]["uid"] == reference["uid"] and not _is_done(pod)

    def _owner(self, claim: Object) -> Object | None:
        """The pod that the claim was made for."""
        uid = controller_of(claim["metadata"])
        for reference in claim["metadata"].get("ownerReferences", ()):
            if reference["uid"] == uid and reference["kind"] == "Pod":
                return self._hands.store.find(kinds.POD, reference["name"], claim["metadata"]["namespace"])
        return None


def claims_of(hands: Hands, pod: Object) -> list[Object]:
    """The claims that the pod uses as far as they exist, the one for its extended resources among them."""
    namespace = pod["metadata"]["namespace"]
    found = (hands.store.find(kinds.RESOURCE_CLAIM, name, namespace) for name in _claim_names(pod))
    return [claim for claim in found if claim is not None]


def _claim_names(pod: Object) -> list[str]:
    """Names of its claims; an entry whose claim is not made yet is left out."""
    made = {each["name"]: each.get("resourceClaimName") for each in _statuses(pod)}
    names = [each.get("resourceClaimName") or made.get(each["name"]) for each in pod["spec"].get("resourceClaims", ())]
    extended = pod.get("status", {}).get("extendedResourceClaimStatus", {}).get("resourceClaimName")
    return [name for name in (*names, extended) if name]


def without_finalizer(hands: Hands, claim: Object) -> Object:
    """The claim, written without the finalizer that keeps it while it is allocated."""
    left = [each for each in claim["metadata"].get("finalizers", ()) if each != FINALIZER]
    meta = {key: value for key, value in claim["metadata"].items() if key != "finalizers"}
    meta |= {"finalizers": left} if left else {}
    return hands.replace(kinds.RESOURCE_CLAIM, claim | {"metadata": meta})


def consumer(pod: Object) -> Object:
    """The pod as an entry of `reservedFor`."""
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


def is_reserved(claim: Object, pod: Object) -> bool:
    """Whether the pod is among the claim's consumers."""
    return any(each["uid"] == pod["metadata"]["uid"] for each in claim.get("status", {}).get("reservedFor", ()))


def _statuses(pod: Object) -> list[Object]:
    found: list[Object] = pod.get("status", {}).get("resourceClaimStatuses", [])
    return found


def _entry_of(claim: Object) -> str:
    return str(claim["metadata"].get("annotations", {}).get(_POD_CLAIM, ""))


def _is_done(pod: Object) -> bool:
    return is_over(pod) or (is_going(pod) and not pod["spec"].get("nodeName"))
