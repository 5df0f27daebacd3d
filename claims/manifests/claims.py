"""The ResourceClaimTemplate of a wish (resource.k8s.io/v1). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from claims.manifests.yaml import Value, document
from claims.wish import WHOLE, ClassFacts, Strategy, Wish
from dra.objects import API_VERSION
from dra.quantity import Quantity

DEVICE_REQUEST = "gpu"  # the name of the one device request, which the pod's container refers to

# Every pod gets its own resource claim, which carries the label too: so the claims of a request can be found.
_COMMENT = "Each pod that names it gets a resource claim of its own."


def claim_template(wish: Wish, facts: ClassFacts, labels: Mapping[str, str]) -> str:
    """The template as YAML, labelled, and so are the resource claims made from it."""
    devices: dict[str, Value] = {"requests": [{"name": DEVICE_REQUEST, "exactly": _exactly(wish)}]}
    if wish.strategy and facts.driver:
        devices["config"] = [_config(wish.strategy, facts.driver)]
    return document(
        {
            "apiVersion": API_VERSION,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": wish.name, "namespace": wish.namespace, "labels": labels},
            "spec": {"metadata": {"labels": labels}, "spec": {"devices": devices}},
        },
        comment=_COMMENT,
    )


def _exactly(wish: Wish) -> dict[str, Value]:
    """The ExactDeviceRequest.

    A capacity request *consumes* from a device that can be shared, so a whole device is never asked for by one: its
    memory is a floor, written as a selector. A share consumes its percentage, and memory if that is to be tightened.
    """
    exactly: dict[str, Value] = {"deviceClassName": wish.device_class}
    if wish.memory and wish.share == WHOLE:
        exactly["selectors"] = [{"cel": {"expression": _at_least(wish.memory)}}]
    exactly["count"] = wish.count
    if wish.share < WHOLE:
        memory = {"memory": str(wish.memory)} if wish.memory else {}
        exactly["capacity"] = {"requests": {"sharePercent": str(wish.share), **memory}}
    return exactly


def _at_least(memory: Quantity) -> str:
    """CEL: a capacity without a domain is found under the driver's name, whichever driver that is.

    A device without the key would end the pod's scheduling with an error, on all nodes; `has` makes it no match.
    """
    return (
        "has(device.capacity[device.driver].memory) &&\n"
        f'device.capacity[device.driver].memory.compareTo(quantity("{memory}")) >= 0'
    )


def _config(strategy: Strategy, driver: str) -> dict[str, Value]:
    """The GpuConfig that our driver reads, under whatever name it runs."""
    parameters: dict[str, Value] = {
        "apiVersion": f"resource.{driver}/v1alpha1",
        "kind": "GpuConfig",
        "sharing": {"strategy": str(strategy)},
    }
    return {"requests": [DEVICE_REQUEST], "opaque": {"driver": driver, "parameters": parameters}}
