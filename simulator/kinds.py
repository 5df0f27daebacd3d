"""The kinds that the simulator serves: where they are found and what the API server does to each on a write.

A table and look-ups in it, nothing else. Which kinds grow a generation follows the strategies in
kubernetes/pkg/registry (1.37.2); a kind that is not here is answered with 404, as a real server answers what it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One served kind."""

    group: str = ""
    version: str = "v1"
    kind: str
    plural: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "get", "list", "patch", "update", "watch")

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """The word for one object in a person's command line."""
        return self.kind.lower()

    @property
    def qualified(self) -> str:
        """`plural.group`, as refusals name a resource; the plural alone in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_RBAC: Final = "rbac.authorization.k8s.io"
_DRA: Final = "resource.k8s.io"

NAMESPACE: Final = Kind(
    kind="Namespace", plural="namespaces", namespaced=False, status=True, short_names=("ns",),
    verbs=("create", "get", "list", "patch", "update", "watch"),
)  # fmt: skip
NODE: Final = Kind(kind="Node", plural="nodes", namespaced=False, status=True, short_names=("no",))
POD: Final = Kind(kind="Pod", plural="pods", status=True, generation=True, short_names=("po",))
EVENT: Final = Kind(kind="Event", plural="events", short_names=("ev",))
SERVICE_ACCOUNT: Final = Kind(kind="ServiceAccount", plural="serviceaccounts", short_names=("sa",))
RESOURCE_QUOTA: Final = Kind(kind="ResourceQuota", plural="resourcequotas", status=True, short_names=("quota",))
LEASE: Final = Kind(group="coordination.k8s.io", kind="Lease", plural="leases")
SERVICE: Final = Kind(kind="Service", plural="services", status=True, short_names=("svc",))
VOLUME_CLAIM: Final = Kind(
    kind="PersistentVolumeClaim", plural="persistentvolumeclaims", status=True, short_names=("pvc",)
)
DEPLOYMENT: Final = Kind(
    group="apps", kind="Deployment", plural="deployments", status=True, generation=True, short_names=("deploy",)
)
STATEFUL_SET: Final = Kind(
    group="apps", kind="StatefulSet", plural="statefulsets", status=True, generation=True, short_names=("sts",)
)
REPLICA_SET: Final = Kind(
    group="apps", kind="ReplicaSet", plural="replicasets", status=True, generation=True, short_names=("rs",)
)
JOB: Final = Kind(group="batch", kind="Job", plural="jobs", status=True, generation=True)
AUTOSCALER: Final = Kind(
    group="autoscaling", version="v2", kind="HorizontalPodAutoscaler", plural="horizontalpodautoscalers",
    status=True, generation=True, short_names=("hpa",),
)  # fmt: skip
PRIORITY_CLASS: Final = Kind(
    group="scheduling.k8s.io", kind="PriorityClass", plural="priorityclasses", namespaced=False, generation=True,
    short_names=("pc",),
)  # fmt: skip
DEVICE_CLASS: Final = Kind(group=_DRA, kind="DeviceClass", plural="deviceclasses", namespaced=False, generation=True)
RESOURCE_CLAIM: Final = Kind(group=_DRA, kind="ResourceClaim", plural="resourceclaims", status=True)
RESOURCE_CLAIM_TEMPLATE: Final = Kind(group=_DRA, kind="ResourceClaimTemplate", plural="resourceclaimtemplates")
RESOURCE_SLICE: Final = Kind(
    group=_DRA, kind="ResourceSlice", plural="resourceslices", namespaced=False, generation=True
)
DEVICE_TAINT_RULE: Final = Kind(
    group=_DRA, kind="DeviceTaintRule", plural="devicetaintrules", namespaced=False, status=True, generation=True
)
GPU_CLASS: Final = Kind(
    group="portico.dev", version="v1alpha1", kind="GPUClass", plural="gpuclasses", namespaced=False, generation=True
)
PHYSICAL_GPU: Final = Kind(
    group="portico.dev", version="v1alpha1", kind="PhysicalGPU", plural="physicalgpus", namespaced=False, status=True,
    generation=True, short_names=("pgpu",),
)  # fmt: skip
ROLE: Final = Kind(group=_RBAC, kind="Role", plural="roles")
ROLE_BINDING: Final = Kind(group=_RBAC, kind="RoleBinding", plural="rolebindings")
CLUSTER_ROLE: Final = Kind(group=_RBAC, kind="ClusterRole", plural="clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Kind(
    group=_RBAC, kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False
)

KINDS: Final = (
    NAMESPACE, NODE, POD, EVENT, SERVICE_ACCOUNT, RESOURCE_QUOTA, LEASE, SERVICE, VOLUME_CLAIM,
    DEPLOYMENT, STATEFUL_SET, REPLICA_SET, JOB, AUTOSCALER, PRIORITY_CLASS,
    DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE, DEVICE_TAINT_RULE,
    GPU_CLASS, PHYSICAL_GPU, ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING,
)  # fmt: skip

_BY_PATH: Final = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
_BY_NAME: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}


def served_at(group: str, version: str, plural: str) -> Kind | None:
    """The kind whose objects stand below that path, None where nothing is served."""
    return _BY_PATH.get((group, version, plural))


def of_object(api_version: str, kind: str) -> Kind | None:
    """The kind that an object says it is, None where the simulator does not serve it."""
    return _BY_NAME.get((api_version, kind))
