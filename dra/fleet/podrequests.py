"""What a pod takes of its node, as kube-scheduler counts it. Pure.

`PodRequests` of k8s.io/component-helpers/resource/helpers.go with the options of the scheduler's NodeInfo (1.37): the
sum of containers and sidecars or the largest init container, pod-level requests in their place, overhead on top; while
a pod is resized the larger of what is asked, allocated and in force. Without claims on node allocatable resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dra.objects.pod import Container, ContainerStatus, Pod
from dra.quantity import Quantity, parse_quantity

type Amounts = Mapping[str, Quantity]
type _Asked = Callable[[Container, ContainerStatus | None], Mapping[str, str]]

_POD_LEVEL: Final = frozenset({"cpu", "memory"})
_HUGE: Final = "hugepages-"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_RESIZE: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"
_NOTHING: Final[Mapping[str, str]] = {}


def takes_room(pod: Pod) -> bool:
    """Whether the pod is on a node and not finished: the others the scheduler does not count."""
    return bool(pod.spec.node_name) and pod.status.phase not in _FINISHED


def pod_requests(pod: Pod) -> dict[str, Quantity]:
    """The amounts by resource name, without the pod's own place. InvalidQuantityError where one can't be read."""
    amounts = _of_containers(pod)
    asked = _read(pod.spec.resources.requests) if pod.spec.resources else {}
    if any(map(_is_of_pods, asked)):
        if pod.status.resources is not None:
            given = _read(pod.status.resources.requests), _read(pod.status.allocated_resources)
            asked = _largest({} if _is_infeasible(pod) else asked, *given)
        amounts |= {name: amount for name, amount in asked.items() if _is_of_pods(name)}
    return _sum([amounts, _read(pod.spec.overhead)])


def _is_of_pods(name: str) -> bool:
    """Whether a pod can ask for it as a whole (KEP-2837)."""
    return name in _POD_LEVEL or name.startswith(_HUGE)


def _of_containers(pod: Pod) -> dict[str, Quantity]:
    """Of all containers together; who is being resized is counted by what is largest."""
    asked = _aggregate(pod, lambda container, _: container.resources.requests)
    infeasible, status = _is_infeasible(pod), pod.status
    if status.allocated_resources and status.resources is not None and status.resources.requests:
        allocated, actual = _read(status.allocated_resources), _read(status.resources.requests)
    elif status.container_statuses or status.init_container_statuses or infeasible:
        allocated = _aggregate(pod, lambda *each: _allocated(*each, infeasible=infeasible))
        actual = _aggregate(pod, lambda *each: _actual(*each, infeasible=infeasible))
    else:
        return asked
    return _largest({} if infeasible else asked, actual, allocated)


def _aggregate(pod: Pod, asked: _Asked) -> dict[str, Quantity]:
    """`aggregateContainerResourcesByFn`: sidecars stay, so each init container runs beside those before it."""
    statuses = {each.name: each for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)}

    def of(container: Container) -> Amounts:
        return _read(asked(container, statuses.get(container.name)))

    sidecars: dict[str, Quantity] = {}
    starting: dict[str, Quantity] = {}
    for container in pod.spec.init_containers:
        amounts = of(container)
        if container.restart_policy == "Always":
            sidecars = amounts = _sum([sidecars, amounts])
        else:
            amounts = _sum([sidecars, amounts])
        starting = _largest(starting, amounts)
    return _largest(_sum([sidecars, *map(of, pod.spec.containers)]), starting)


def _allocated(container: Container, status: ContainerStatus | None, *, infeasible: bool) -> Mapping[str, str]:
    if status is not None and status.allocated_resources:
        return status.allocated_resources
    return _NOTHING if infeasible else container.resources.requests


def _actual(container: Container, status: ContainerStatus | None, *, infeasible: bool) -> Mapping[str, str]:
    if status is not None and status.resources is not None and status.resources.requests:
        return status.resources.requests
    return _allocated(container, status, infeasible=infeasible)


def _is_infeasible(pod: Pod) -> bool:
    pending = (each for each in pod.status.conditions if each.type == _RESIZE)
    return any(each.reason == _INFEASIBLE for each in pending)


def _read(requests: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: parse_quantity(text) for name, text in requests.items()}


def _sum(parts: Iterable[Amounts]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _largest(*parts: Amounts) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.items():
            if name not in found or found[name] < amount:
                found[name] = amount
    return found
