"""What a wish asks by: a ResourceClaimTemplate, or one ResourceClaim for all pods (resource.k8s.io/v1). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from claims.manifests.yaml import Value, document
from claims.wish import WHOLE, Choice, ClassFacts, Constraint, Interval, Owner, Strategy, Toleration, Wish
from dra.objects import API_VERSION
from dra.quantity import Format, Quantity
from gpuinventory.gpuclasses import Offer, keys_of

DEVICE_REQUEST = "gpu"  # the name of the one device request, which the pod's container refers to

_MIB: Final = 2**20

# Every pod gets its own resource claim, which carries the label too: so the claims of a request can be found.
_COMMENT = "Each pod that names it gets a resource claim of its own."
_SHARED = "All pods that name it share its devices: up to 256, in this namespace."


type Classes = Mapping[str, ClassFacts]
"""The facts of the GPU classes that a wish names; a name without facts is a DeviceClass."""


def claim_template(wish: Wish, classes: Classes, labels: Mapping[str, str]) -> str:
    """The template as YAML, labelled, and so are the resource claims made from it."""
    spec: Value = {"metadata": {"labels": labels}, "spec": {"devices": _devices(wish, classes)}}
    return _document("ResourceClaimTemplate", wish, labels, spec, _COMMENT)


def resource_claim(wish: Wish, classes: Classes, labels: Mapping[str, str]) -> str:
    """The resource claim as YAML, labelled."""
    return _document("ResourceClaim", wish, labels, {"devices": _devices(wish, classes)}, _SHARED)


def pod_claim(wish: Wish) -> dict[str, Value]:
    """The entry of a pod's `spec.resourceClaims`."""
    key = "resourceClaimName" if wish.owner is Owner.SHARED else "resourceClaimTemplateName"
    return {"name": DEVICE_REQUEST, key: wish.name}


def _document(kind: str, wish: Wish, labels: Mapping[str, str], spec: Value, comment: str) -> str:
    metadata: Value = {"name": wish.name, "namespace": wish.namespace, "labels": labels}
    return document({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}, comment=comment)


def _devices(wish: Wish, classes: Classes) -> dict[str, Value]:
    devices: dict[str, Value] = {"requests": [_device_request(wish, classes)]}
    if wish.constraints:
        devices["constraints"] = [_constraint(each) for each in wish.constraints]
    driver = _facts(wish, classes).driver
    if driver and (wish.strategy or wish.interval):
        devices["config"] = _configs(_sharing(wish.strategy, wish.interval), driver, _kinds(wish, classes))
    return devices


def _facts(choice: Choice, classes: Classes) -> ClassFacts:
    return classes.get(choice.device_class) or ClassFacts(name=choice.device_class)


def _device_request(wish: Wish, classes: Classes) -> dict[str, Value]:
    """The DeviceRequest; with alternatives the first that can be had counts, in their order."""
    ways = [_way(wish, choice, _facts(choice, classes)) for choice in wish.choices]
    if len(ways) == 1:
        return {"name": DEVICE_REQUEST, "exactly": ways[0]}
    return {
        "name": DEVICE_REQUEST,
        "firstAvailable": [{"name": f"choice-{number}", **way} for number, way in enumerate(ways, 1)],
    }


def _way(wish: Wish, choice: Choice, facts: ClassFacts) -> dict[str, Value]:
    """An ExactDeviceRequest or DeviceSubRequest.

    A capacity request *consumes* from a device that can be shared, so a whole device is never asked for by one: its
    memory is a floor, written as a selector. A share consumes its percentage, and memory if that is to be tightened.
    """
    way: dict[str, Value] = {"deviceClassName": facts.device_class}
    selectors: list[Value] = [{"cel": {"expression": each}} for each in _selectors(wish, choice, facts)]
    if selectors:
        way["selectors"] = selectors
    way["count"] = choice.count
    if capacity := _capacity(choice, facts):
        way["capacity"] = {"requests": capacity}
    if wish.tolerations:
        way["tolerations"] = [_toleration(each) for each in wish.tolerations]
    return way


def _selectors(wish: Wish, choice: Choice, facts: ClassFacts) -> Iterator[str]:
    yield from facts.selectors
    if choice.profile:
        yield _is_profile(choice.profile, keys_of(facts.driver or "").profile or "migProfile")
    if choice.memory and choice.share == WHOLE:
        yield _at_least(choice.memory)
    yield from wish.cel


def _capacity(choice: Choice, facts: ClassFacts) -> dict[str, Value]:
    if choice.slots is not None:
        return {"slots": str(choice.slots)}
    if choice.share == WHOLE:
        return {}
    memory = choice.memory or _part_of_memory(choice.share, facts)
    return {facts.share_capacity: str(choice.share), **({"memory": str(memory)} if memory else {})}


def _part_of_memory(share: int, facts: ClassFacts) -> Quantity | None:
    """The memory that a share must name since it would consume all of it otherwise: its part of the smallest device."""
    portion = facts.offer.share if facts.offer else None
    if portion is None or not portion.takes_all_memory or not portion.sizes:
        return None
    return Quantity.of(portion.sizes[0] * share // (WHOLE * _MIB) * _MIB, Format.BINARY_SI)


def _constraint(constraint: Constraint) -> dict[str, Value]:
    return {"requests": [DEVICE_REQUEST], str(constraint.kind): constraint.attribute}


def _toleration(toleration: Toleration) -> dict[str, Value]:
    texts = {"key": toleration.key, "operator": toleration.operator, "value": toleration.value}
    given: dict[str, Value] = {key: text for key, text in texts.items() if text}
    if toleration.effect:
        given["effect"] = toleration.effect
    if toleration.seconds is not None:
        given["tolerationSeconds"] = toleration.seconds
    return given


def _is_profile(profile: str, attribute: str) -> str:
    """CEL, guarded as `_at_least` is."""
    name = f"device.attributes[device.driver].{attribute}"
    return f'has({name}) &&\n{name} == "{profile}"'


def _at_least(memory: Quantity) -> str:
    """CEL: a capacity without a domain is found under the driver's name, whichever driver that is.

    A device without the key would end the pod's scheduling with an error, on all nodes; `has` makes it no match.
    """
    return (
        "has(device.capacity[device.driver].memory) &&\n"
        f'device.capacity[device.driver].memory.compareTo(quantity("{memory}")) >= 0'
    )


def _sharing(strategy: Strategy | None, interval: Interval | None) -> dict[str, Value]:
    if interval:
        return {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": str(interval)}}
    return {"strategy": str(strategy)}


def _configs(sharing: Value, driver: str, kinds: Sequence[str]) -> list[Value]:
    """What the driver reads, under whatever name ours runs; NVIDIA's own has a version of its own.

    Of several kinds the one of the device counts, as long as no entry names a request.
    """
    version = "resource.nvidia.com/v1beta1" if driver == "gpu.nvidia.com" else f"resource.{driver}/v1alpha1"
    named: dict[str, Value] = {"requests": [DEVICE_REQUEST]} if len(kinds) == 1 else {}
    documents: list[dict[str, Value]] = [{"apiVersion": version, "kind": kind, "sharing": sharing} for kind in kinds]
    return [{**named, "opaque": {"driver": driver, "parameters": document}} for document in documents]


def _kinds(wish: Wish, classes: Classes) -> tuple[str, ...]:
    """The kinds of parameters for the devices that these choices can give: whole ones, MIG devices, or either."""
    kinds = (kind for choice in wish.choices for kind in _kinds_of(choice, _facts(choice, classes).offer))
    return tuple(dict.fromkeys(kinds))


def _kinds_of(choice: Choice, offer: Offer | None) -> tuple[str, ...]:
    whole, part = "GpuConfig", "MigDeviceConfig"
    if choice.profile:
        return (part,)
    if offer is None or not offer.parts or choice.slots is not None:
        return (whole,)
    return (whole, part) if offer.wholes else (part,)
