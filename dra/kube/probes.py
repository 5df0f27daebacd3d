"""Small objects that tell which feature gates an API server has on: sent as dry runs, read by what comes back. Pure.

A server drops fields whose gate is off, and a server that does not know a field refuses it (strict validation). Each
probe asks for one such field beside a plain object, which has to be accepted first: else somebody's admission speaks.
Gates and what they drop: `dropDisabledFields` of `pkg/registry/resource/*/strategy.go` and `resourceclaimspec` (1.37).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from dra.kube.requests import (
    DEVICE_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    Request,
    Resource,
    create,
)
from dra.objects.meta import JsonObject, encode_value

type State = Literal["on", "off", "unknown"]
type Path = tuple[str | int, ...]

_MISSING: Final = object()
_NAME: Final = "portico-probe"
# AuthorizedForAdmin in pkg/registry/resource/utils.go: only where the gate is on does the server look at the namespace.
_ADMIN_NAMESPACE: Final = "admin access to devices requires the"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question. `gates` are all on where the field at `path` comes back as it was sent.

    A refusal that has `on_if_refused` in it comes from a server with the gate on; any other means that it is off.
    """

    gates: tuple[str, ...]
    resource: Resource
    spec: JsonObject
    path: Path
    on_if_refused: str = ""

    @property
    def field(self) -> str:
        """The field in words, as `spec.devices[0].taints`."""
        return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in self.path).lstrip(".")

    def request(self, namespace: str) -> Request:
        """The dry run. `namespace` is for kinds that have one."""
        return _dry_run(self.resource, self.spec, namespace)

    def judge(self, answer: bytes) -> tuple[State, str]:
        """What an accepted dry run says, and the evidence: a sentence about the API server."""
        came, sent = _at(msgspec.json.decode(answer), self.path), _at({"spec": self.spec}, self.path)
        return ("on", f"it keeps {self.field}") if came == sent else ("off", f"it drops {self.field}")

    def judge_refusal(self, sentence: str) -> tuple[State, str]:
        """What a refusal as not valid says, and the server's own sentence without the name that it made up."""
        told = sentence.partition(" is invalid: ")[2] or sentence
        return "on" if self.on_if_refused and self.on_if_refused in sentence else "off", f"it says: {told}"


def plain(resource: Resource, namespace: str) -> Request:
    """The dry run of an object of that kind that asks for no feature."""
    return _dry_run(resource, _PLAIN[resource.kind], namespace)


def _dry_run(resource: Resource, spec: JsonObject, namespace: str) -> Request:
    metadata = {"generateName": f"{_NAME}-"}
    document = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    return create(resource, encode_value(document), namespace=namespace if resource.namespaced else "", dry_run=True)


def _at(value: Any, path: Path) -> Any:
    for each in path:
        try:
            value = value[each]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return value


def _slice(device: JsonObject | None = None, **more: Any) -> JsonObject:
    pool = {"name": _NAME, "generation": 1, "resourceSliceCount": 1}
    devices = {} if device is None else {"devices": [{"name": "probe", **device}]}
    return {"driver": "probe.portico.dev", "nodeName": _NAME, "pool": pool, **devices, **more}


def _template(**request: Any) -> JsonObject:
    return {"spec": {"devices": {"requests": [{"name": "probe", **request}]}}}


def _exactly(**fields: Any) -> JsonObject:
    return _template(exactly={"deviceClassName": _NAME, **fields})


def _derived() -> JsonObject:
    """A derived attribute has to be used in a constraint."""
    spec = _exactly(derivedAttributes=[{"name": "portico.dev/probe", "expression": '"a"'}])
    spec["spec"]["devices"]["constraints"] = [{"matchAttribute": "portico.dev/probe"}]
    return spec


def _capacity(policy: JsonObject) -> JsonObject:
    return {"allowMultipleAllocations": True, "capacity": {"probe": {"value": "10", "requestPolicy": policy}}}


_PLAIN: Final[dict[str, JsonObject]] = {
    RESOURCE_SLICES.kind: _slice({}),
    RESOURCE_CLAIM_TEMPLATES.kind: _exactly(),
    DEVICE_CLASSES.kind: {},
}
_DEVICE: Final = ("spec", "devices", 0)
_REQUEST: Final = ("spec", "spec", "devices", "requests", 0)
_ONE: Final = {"probe": {"value": "1"}}
_DRAWS: Final = {"counterSet": "probe", "counters": _ONE}
_POLICY: Final = {"default": "1", "validRange": {"min": "1", "step": "1"}}
# Both are 1 to a server that knows whole numbers only, and it refuses a value that stands there twice.
_FRACTIONS: Final = {"default": "500m", "validValues": ["500m", "600m"]}

PROBES: Final = (
    Probe(
        gates=("DRAPartitionableDevices",),
        resource=RESOURCE_SLICES,
        spec=_slice(sharedCounters=[{"name": "probe", "counters": _ONE}]),
        path=("spec", "sharedCounters"),
    ),
    Probe(
        gates=("DRAConsumableCapacity",),
        resource=RESOURCE_SLICES,
        spec=_slice(_capacity(_POLICY)),
        path=(*_DEVICE, "allowMultipleAllocations"),
    ),
    Probe(
        gates=("DRAFractionalCapacityRange",),
        resource=RESOURCE_SLICES,
        spec=_slice(_capacity(_FRACTIONS)),
        path=(*_DEVICE, "capacity", "probe", "requestPolicy"),
    ),
    Probe(
        gates=("DRADeviceTaints",),
        resource=RESOURCE_SLICES,
        spec=_slice({"taints": [{"key": "probe", "effect": "NoSchedule"}]}),
        path=(*_DEVICE, "taints", 0, "key"),  # the server adds when it was added
    ),
    Probe(
        gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
        resource=RESOURCE_SLICES,
        spec=_slice({"bindingConditions": ["probe"], "bindingFailureConditions": ["probe-failed"]}),
        path=(*_DEVICE, "bindingConditions"),
    ),
    Probe(
        gates=("DRAListTypeAttributes",),
        resource=RESOURCE_SLICES,
        spec=_slice({"attributes": {"probe": {"strings": ["a", "b"]}}}),
        path=(*_DEVICE, "attributes", "probe", "strings"),
    ),
    Probe(
        gates=("DRADeviceCompatibilityGroups",),
        resource=RESOURCE_SLICES,
        spec=_slice({"consumesCounters": [{**_DRAWS, "compatibilityGroups": ["probe"]}]}),
        path=(*_DEVICE, "consumesCounters", 0, "compatibilityGroups"),
    ),
    Probe(
        gates=("DRAOptionalNodeOperations",),
        resource=RESOURCE_SLICES,
        spec=_slice({}, skipNodeOperations=["*"]),
        path=("spec", "skipNodeOperations"),
    ),
    Probe(
        gates=("DRAPrioritizedList",),
        resource=RESOURCE_CLAIM_TEMPLATES,
        spec=_template(firstAvailable=[{"name": "first", "deviceClassName": _NAME}]),
        path=(*_REQUEST, "firstAvailable", 0, "name"),
    ),
    Probe(
        gates=("DRAAdminAccess",),
        resource=RESOURCE_CLAIM_TEMPLATES,
        spec=_exactly(adminAccess=True),
        path=(*_REQUEST, "exactly", "adminAccess"),
        on_if_refused=_ADMIN_NAMESPACE,
    ),
    Probe(
        gates=("DRADerivedAttributes",),
        resource=RESOURCE_CLAIM_TEMPLATES,
        spec=_derived(),
        path=(*_REQUEST, "exactly", "derivedAttributes", 0, "name"),
    ),
    Probe(
        gates=("DRAExtendedResource",),
        resource=DEVICE_CLASSES,
        spec={"extendedResourceName": "portico.dev/probe"},
        path=("spec", "extendedResourceName"),
    ),
)
