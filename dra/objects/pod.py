"""Pod, read for what it asks for, which ResourceClaims it uses and what it takes of its node (core/v1)."""

from __future__ import annotations

from dra.objects.meta import ApiStruct, ObjectMeta, QuantityText
from dra.objects.nodeselector import NodeSelector
from dra.objects.resourceclaim import Condition


class ContainerClaim(ApiStruct, frozen=True, kw_only=True):
    """A container's use of one of the pod's claim entries, or of one device request of it."""

    name: str
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    """What a container needs; quantities as texts. Extended resources have equal requests and limits."""

    requests: dict[str, QuantityText] = {}
    limits: dict[str, QuantityText] = {}
    claims: tuple[ContainerClaim, ...] = ()


class Container(ApiStruct, frozen=True, kw_only=True):
    """One container. An init container with restart policy Always is a sidecar: it stays."""

    name: str
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class PodResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A claim entry of a pod: a named ResourceClaim, or a template that makes one."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodToleration(ApiStruct, frozen=True, kw_only=True):
    """A toleration of node taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeAffinity(ApiStruct, frozen=True, kw_only=True):
    """Which nodes a pod can go to; what it would merely like is not read."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(ApiStruct, frozen=True, kw_only=True):
    """Where a pod wants to be, as far as nodes go."""

    node_affinity: NodeAffinity | None = None


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    """What runs, with which claims, and where it can. `resources` are those of the pod as a whole."""

    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: dict[str, QuantityText] = {}
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[PodToleration, ...] = ()


class PodResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """Which ResourceClaim was made for an entry; none where none was needed."""

    name: str
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True, kw_only=True):
    """Which device request of the special claim serves an extended resource of a container."""

    container_name: str
    resource_name: str
    request_name: str


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The ResourceClaim that the scheduler made for the pod's extended resources (KEP-5004)."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str


class ContainerStatus(ApiStruct, frozen=True, kw_only=True):
    """What a container was given, while it is resized in place (KEP-1287)."""

    name: str
    allocated_resources: dict[str, QuantityText] = {}
    resources: ResourceRequirements | None = None


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    """How far the pod is, the claims made for it, and what its node gave it."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: dict[str, QuantityText] = {}
    resources: ResourceRequirements | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiStruct, frozen=True, kw_only=True):
    """One pod."""

    api_version: str = "v1"
    kind: str = "Pod"
    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
