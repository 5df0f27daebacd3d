"""Pod, read for what it asks for and which ResourceClaims it uses (core/v1)."""

from __future__ import annotations

from dra.objects.meta import ApiStruct, ObjectMeta, QuantityText


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


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    """What runs, and with which claims."""

    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    node_name: str = ""


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


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    """How far the pod is, and the claims made for it."""

    phase: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiStruct, frozen=True, kw_only=True):
    """One pod."""

    api_version: str = "v1"
    kind: str = "Pod"
    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
