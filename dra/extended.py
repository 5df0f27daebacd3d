"""Extended resources served by device classes (KEP-5004): names, which class answers, the special claim, quota keys.

Pure rules over objects. Follows dynamic-resource-allocation/deviceclass/extendedresourcecache, the scheduler's
dynamicresources/extendeddynamicresources.go and pkg/quota/v1/evaluator/core/resource_claims.go of Kubernetes 1.37.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dra.errors import InvalidObjectError
from dra.names import is_extended_resource_name
from dra.objects import (
    Container,
    ContainerExtendedResourceRequest,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    Pod,
    ResourceClaimSpec,
)
from dra.quantity import parse_quantity

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
CLASS_QUOTA_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
CLAIM_COUNT_KEY: Final = "count/resourceclaims.resource.k8s.io"
ALL_COUNTS_AS: Final = 32  # AllocationResultsMaxSize: the most that mode All can take
_REQUESTS: Final = "requests."
_LONG_AGO: Final = datetime.fromisoformat("0001-01-01T00:00:00+00:00")  # Go's zero time


def implicit_name(class_name: str) -> str:
    """The extended resource name that every class answers to."""
    return IMPLICIT_PREFIX + class_name


def is_served_name(name: str) -> bool:
    """Whether a pod may ask for devices by the name: an extended resource name, or the implicit one of a class."""
    return is_extended_resource_name(name) or name.startswith(IMPLICIT_PREFIX)


def serving_classes(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Which class answers for each extended resource name, explicit or implicit.

    Of several classes with one explicit name the newest wins, of equally new ones the lower name. The scheduler's
    cache goes by the order of events: there a class that loses to one seen before it loses its implicit name too,
    and deleting the winner leaves the name unserved until the next event of another class.
    """
    serving: dict[str, DeviceClass] = {}
    for device_class in sorted(classes, key=lambda each: each.metadata.name):
        explicit = device_class.spec.extended_resource_name
        if explicit and (explicit not in serving or _created(device_class) > _created(serving[explicit])):
            serving[explicit] = device_class
        serving[implicit_name(device_class.metadata.name)] = device_class
    return serving


def quota_keys(device_class: DeviceClass) -> tuple[str, ...]:
    """Each ResourceQuota key that counts devices of the class: the class key, implicit and explicit extended name.

    Upstream matches the implicit key for plain claims only where the class has an explicit name as well.
    """
    name, explicit = device_class.metadata.name, device_class.spec.extended_resource_name
    keys = (name + CLASS_QUOTA_SUFFIX, _REQUESTS + implicit_name(name))
    return (*keys, _REQUESTS + explicit) if explicit else keys


def charges(resource_claim_spec: ResourceClaimSpec, classes: Iterable[DeviceClass]) -> dict[str, int]:
    """What one ResourceClaim is charged, by quota key, at its creation; a class that does not exist is charged too.

    Mode All counts as 32, alternatives as their maximum per class, device requests are summed. Where two classes of
    the claim carry one explicit name, upstream charges that key for either; here both count, so never too little.
    """
    by_name = {device_class.metadata.name: device_class for device_class in classes}
    charged = {CLAIM_COUNT_KEY: 1}
    for class_name, count in _devices_by_class(resource_claim_spec).items():
        keys = quota_keys(by_name[class_name]) if class_name in by_name else _keys_without_class(class_name)
        spent = keys if count > 0 else keys[:1]
        charged |= {key: charged.get(key, 0) + count for key in spent}
    return charged


def _keys_without_class(class_name: str) -> tuple[str, ...]:
    return (class_name + CLASS_QUOTA_SUFFIX, _REQUESTS + implicit_name(class_name))


def _devices_by_class(resource_claim_spec: ResourceClaimSpec) -> Counter[str]:
    devices: Counter[str] = Counter()
    for device_request in resource_claim_spec.devices.requests:
        devices.update(_most_by_class(device_request))
    return devices


def _most_by_class(device_request: DeviceRequest) -> dict[str, int]:
    alternatives: tuple[ExactDeviceRequest, ...] = device_request.first_available
    if not alternatives and device_request.exactly is not None:
        alternatives = (device_request.exactly,)
    most: dict[str, int] = {}
    for alternative in alternatives:
        name = alternative.device_class_name
        most[name] = max(most.get(name, 0), _counted(alternative))
    return most


def _counted(device_request: ExactDeviceRequest) -> int:
    """Unknown modes count nothing, as upstream."""
    counts = {"ExactCount": device_request.count, "All": ALL_COUNTS_AS}
    return counts.get(device_request.allocation_mode, 0)


@dataclass(frozen=True, slots=True)
class SpecialClaim:
    """What the scheduler asks for a pod's extended resources, and which device request serves which container."""

    device_requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One container's need of one extended resource, named as the scheduler names its device request."""

    container: str
    name: str
    count: int


def special_claim(pod: Pod, classes: Iterable[DeviceClass], allocatable: Mapping[str, str]) -> SpecialClaim:
    """The claim that the scheduler makes for the pod on a node with these allocatable quantities.

    A name that the node offers itself (a device plugin) is left out. Containers that run together are summed, ordinary
    init containers first reuse what later containers hold and need only their maximum besides.
    """
    serving = serving_classes(classes)
    device_requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(_names(pod)):
        if resource in serving and parse_quantity(allocatable.get(resource, "0")).value == 0:
            asked, served = _serve(pod, resource)
            class_name = serving[resource].metadata.name
            device_requests += [_device_request(each, class_name) for each in asked]
            mappings += served
    return SpecialClaim(tuple(sorted(device_requests, key=lambda each: each.name)), tuple(mappings))


def _names(pod: Pod) -> set[str]:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return {name for container in containers for name in container.resources.requests if is_served_name(name)}


def _device_request(asked: _Asked, class_name: str) -> DeviceRequest:
    return DeviceRequest(name=asked.name, exactly=ExactDeviceRequest(device_class_name=class_name, count=asked.count))


def _serve(pod: Pod, resource: str) -> tuple[list[_Asked], list[ContainerExtendedResourceRequest]]:
    """Device requests for one resource and their mappings: first of what stays, then of ordinary init containers."""
    staying = dict(_staying(pod, resource))
    initial, reused = [], []
    for index, container in enumerate(pod.spec.init_containers):
        wanted = 0 if _is_sidecar(container) else _wanted(container, resource)
        later, missing = _reuse(wanted, [asked for at, asked in staying.items() if at >= index])
        reused += [(container.name, asked.name) for asked in later]
        if missing:
            initial.append(_asked(index, container, resource, missing))
    largest = max(initial, key=lambda asked: asked.count, default=None)
    served = [(asked.container, asked.name) for asked in staying.values()]
    served += _in_order_of_containers(pod, reused, [(asked.container, largest.name) for asked in initial if largest])
    requests = ([largest] if largest else []) + list(staying.values())
    return requests, [_mapping(container, resource, name) for container, name in served]


def _in_order_of_containers(
    pod: Pod, reused: list[tuple[str, str]], initial: list[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    for container in pod.spec.init_containers:
        yield from (each for each in reused + initial if each[0] == container.name)


def _mapping(container: str, resource: str, name: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container, resource_name=resource, request_name=name)


def _staying(pod: Pod, resource: str) -> Iterator[tuple[int, _Asked]]:
    """Sidecars and containers that want the resource, by index over init containers, then containers."""
    for index, container in enumerate((*pod.spec.init_containers, *pod.spec.containers)):
        stays = index >= len(pod.spec.init_containers) or _is_sidecar(container)
        if stays and (wanted := _wanted(container, resource)):
            yield index, _asked(index, container, resource, wanted)


def _reuse(wanted: int, held: list[_Asked]) -> tuple[list[_Asked], int]:
    """Which of the later containers' devices serve an init container, in order, and how many more it needs."""
    taken: list[_Asked] = []
    for asked in held:
        if wanted <= 0:
            break
        taken.append(asked)
        wanted -= asked.count
    return taken, max(wanted, 0)


def _asked(index: int, container: Container, resource: str, count: int) -> _Asked:
    rank = sorted(container.resources.requests).index(resource)
    return _Asked(container.name, f"container-{index}-request-{rank}", count)


def _wanted(container: Container, resource: str) -> int:
    """How many devices; a quantity that is no int64 asks for none, as upstream."""
    return parse_quantity(container.resources.requests.get(resource, "0")).as_int64() or 0


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _created(device_class: DeviceClass) -> datetime:
    text = device_class.metadata.creation_timestamp
    try:
        return datetime.fromisoformat(text) if text else _LONG_AGO
    except ValueError as error:
        raise InvalidObjectError(
            f"DeviceClass {device_class.metadata.name}: /metadata/creationTimestamp is {text!r}, no RFC 3339 time",
            pointer="/metadata/creationTimestamp",
        ) from error
