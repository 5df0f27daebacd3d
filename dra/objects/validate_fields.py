"""Rules of single fields that several kinds share: names, quantities, lists, taints, selectors.

Each rule yields faults and raises nothing. Limits are those of Kubernetes 1.37 (pkg/apis/resource/validation).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dra.errors import InvalidQuantityError
from dra.names import MAX_LABEL, MAX_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_label_key, is_label_value
from dra.objects.device import DeviceTaint
from dra.objects.deviceclass import DeviceSelector, OpaqueConfiguration
from dra.objects.meta import ObjectMeta, encode_value
from dra.objects.reading import pointer_of
from dra.objects.resourceclaim import DeviceToleration
from dra.quantity import Quantity, parse_quantity

MAX_SELECTORS: Final = 32
MAX_CONFIG: Final = 32
MAX_EXPRESSION: Final = 10 * 1024  # bytes
MAX_PARAMETERS: Final = 10 * 1024  # bytes of JSON
MAX_CONDITIONS: Final = 4
_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_IDENTIFIER: Final = 32


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that the API server would refuse: where (JSON pointer), what stands there, which rule it breaks."""

    pointer: str
    value: object
    rule: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'} is {self.value!r}, {self.rule}"


type Faults = Iterator[Fault]


def meta_faults(meta: ObjectMeta) -> Faults:
    if not meta.name and not meta.generate_name:
        yield Fault("/metadata/name", "", "name or generateName is required")
    if meta.name and not is_dns_subdomain(meta.name):
        yield Fault("/metadata/name", meta.name, f"must be a DNS subdomain of at most {MAX_SUBDOMAIN} characters")
    yield from label_faults(meta.labels, "/metadata/labels")
    for key in meta.annotations:
        if not is_label_key(key.lower()):
            yield Fault("/metadata/annotations" + pointer_of(key), key, "must have a label key as its name")


def label_faults(labels: dict[str, str], at: str) -> Faults:
    for key, value in labels.items():
        if not is_label_key(key):
            yield Fault(at + pointer_of(key), key, "must have a label key as its name")
        if not is_label_value(value):
            yield Fault(at + pointer_of(key), value, "must be a label value")


def driver_faults(name: str, at: str) -> Faults:
    if len(name) > MAX_LABEL or not is_dns_subdomain(name.lower()):
        yield Fault(at, name, f"must be a DNS subdomain of at most {MAX_LABEL} characters")


def pool_faults(name: str, at: str) -> Faults:
    if len(name) > MAX_SUBDOMAIN or not all(map(is_dns_subdomain, name.split("/"))):
        yield Fault(at, name, f"must be DNS subdomains joined by '/', at most {MAX_SUBDOMAIN} characters")


def label_name_faults(name: str, at: str) -> Faults:
    if not is_dns_label(name):
        yield Fault(at, name, f"must be a DNS label of at most {MAX_LABEL} characters")


def class_name_faults(name: str, at: str) -> Faults:
    if not is_dns_subdomain(name):
        yield Fault(at, name, f"must be a DNS subdomain of at most {MAX_SUBDOMAIN} characters")


def qualified_name_faults(name: str, at: str, *, domain_required: bool = False) -> Faults:
    """`QualifiedName` and `FullyQualifiedName`. What has two slashes passes, as upstream."""
    parts = name.split("/")
    if len(parts) == 1 and domain_required:
        yield Fault(at, name, "must have a domain: <DNS subdomain>/<C identifier>")
    if len(parts) > 2:
        return
    if len(parts) == 2:
        yield from driver_faults(parts[0], at)
    if len(parts[-1]) > _MAX_IDENTIFIER or not _IDENTIFIER.fullmatch(parts[-1]):
        yield Fault(at, name, f"must end in a C identifier of at most {_MAX_IDENTIFIER} characters")


def quantity_faults(text: str, at: str) -> Faults:
    if quantity_of(text) is None:
        yield Fault(at, text, "must be a quantity such as 80Gi, 500m or 1e3")


def quantity_of(text: str | None) -> Quantity | None:
    """The quantity, or None where there is none or it can't be read."""
    try:
        return parse_quantity(text) if text is not None else None
    except InvalidQuantityError:
        return None


def size_faults(items: Sequence[object], most: int, at: str) -> Faults:
    if len(items) > most:
        yield Fault(at, len(items), f"must have at most {most} entries")


def unique_faults[T](items: Sequence[T], key: Callable[[T], Hashable], at: str) -> Faults:
    seen = set()
    for index, item in enumerate(items):
        if key(item) in seen:
            yield Fault(at + pointer_of(index), key(item), "must be unique in its list")
        seen.add(key(item))


def taint_faults(taint: DeviceTaint, at: str) -> Faults:
    if not is_label_key(taint.key):
        yield Fault(at + "/key", taint.key, "must be a label key")
    if not is_label_value(taint.value):
        yield Fault(at + "/value", taint.value, "must be a label value")
    yield from _one_of(taint.effect, _EFFECTS, at + "/effect")


def toleration_faults(tolerations: Iterable[DeviceToleration], at: str) -> Faults:
    for index, toleration in enumerate(tolerations):
        yield from _toleration_faults(toleration, at + pointer_of(index))


def _toleration_faults(toleration: DeviceToleration, at: str) -> Faults:
    yield from _one_of(toleration.operator or "Equal", ("Equal", "Exists"), at + "/operator")
    if toleration.key and not is_label_key(toleration.key):
        yield Fault(at + "/key", toleration.key, "must be a label key")
    if toleration.operator == "Exists" and toleration.value:
        yield Fault(at + "/value", toleration.value, "must be empty for operator Exists")
    if toleration.operator == "Equal" and not is_label_value(toleration.value):
        yield Fault(at + "/value", toleration.value, "must be a label value")
    if toleration.effect:
        yield from _one_of(toleration.effect, _EFFECTS, at + "/effect")


def _one_of(value: str, choices: tuple[str, ...], at: str) -> Faults:
    if value not in choices:
        yield Fault(at, value, "must be one of " + ", ".join(choices))


def selector_list_faults(selectors: Sequence[DeviceSelector], at: str) -> Faults:
    """Length and presence; whether an expression compiles is for `dra.cel` to say."""
    yield from size_faults(selectors, MAX_SELECTORS, at)
    for index, selector in enumerate(selectors):
        place = at + pointer_of(index) + "/cel"
        if selector.cel is None:
            yield Fault(place, None, "is required")
        elif not selector.cel.expression:
            yield Fault(place + "/expression", "", "is required")
        elif len(selector.cel.expression.encode()) > MAX_EXPRESSION:
            size = len(selector.cel.expression.encode())
            yield Fault(place + "/expression", size, f"must have at most {MAX_EXPRESSION} bytes")


def opaque_faults(opaque: OpaqueConfiguration | None, at: str) -> Faults:
    if opaque is None:
        yield Fault(at, None, "is required")
        return
    yield from driver_faults(opaque.driver, at + "/driver")
    size = len(encode_value(opaque.parameters))
    if size > MAX_PARAMETERS:
        yield Fault(at + "/parameters", size, f"must have at most {MAX_PARAMETERS} bytes")


def binding_condition_faults(conditions: Sequence[str], failures: Sequence[str], at: str) -> Faults:
    for name, values in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        place = f"{at}/{name}"
        yield from size_faults(values, MAX_CONDITIONS, place)
        yield from unique_faults(values, str, place)
        for index, value in enumerate(values):
            if not is_label_key(value):
                yield Fault(place + pointer_of(index), value, "must be a label key")
    for value in sorted(set(conditions) & set(failures)):
        yield Fault(f"{at}/bindingFailureConditions", value, "must not stand in bindingConditions too")
    if bool(conditions) != bool(failures):
        missing = "bindingFailureConditions" if conditions else "bindingConditions"
        yield Fault(f"{at}/{missing}", (), "is required where the other of the two is set")
