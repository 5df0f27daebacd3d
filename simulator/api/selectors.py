"""Label selectors and field selectors of a list or watch (apimachinery/pkg/labels, pkg/fields).

Of the fields that kubernetes 1.37.2 selects by those that somebody uses; any other is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra.names import is_label_key, is_label_value
from simulator import kinds
from simulator.api.failures import ApiError
from simulator.kinds import Kind

type Matches = Callable[[Mapping[str, Any]], bool]

_SET: Final = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^)]*)\)$")
_FIELDS: Final[dict[Kind, tuple[str, ...]]] = {
    kinds.POD: ("spec.nodeName", "status.phase"),
    kinds.EVENT: ("involvedObject.kind", "involvedObject.name", "involvedObject.uid", "reason", "type"),
    kinds.RESOURCE_SLICE: ("spec.nodeName", "spec.driver"),
    kinds.PHYSICAL_GPU: ("spec.nodeName",),
}


def labels(text: str) -> Matches:
    """A label selector to a test of objects; ApiError 400 for one that can't be read."""
    tests = [_requirement(part.strip()) for part in re.split(r",(?![^(]*\))", text) if part.strip()]
    return lambda stored: all(test(stored["metadata"].get("labels", {})) for test in tests)


def _requirement(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(part):
        key, operator, listed = found.groups()
        values = {each.strip() for each in listed.split(",")}
        if operator == "in":
            return lambda has: has.get(key) in values and key in has
        return lambda has: key not in has or has[key] not in values
    for sign in ("!=", "==", "="):
        if sign in part:
            key, value = (each.strip() for each in part.split(sign, 1))
            if not is_label_key(key) or not is_label_value(value):
                break
            return _equality(key, value, wanted=sign != "!=")
    if re.fullmatch(r"!\s*[\w./-]+", part):
        absent = part[1:].strip()
        return lambda has: absent not in has
    if re.fullmatch(r"[\w./-]+", part):
        return lambda has: part in has
    raise ApiError("BadRequest", f"unable to parse requirement: {part!r} is no label requirement")


def _equality(key: str, value: str, *, wanted: bool) -> Callable[[Mapping[str, str]], bool]:
    return lambda has: (has.get(key) == value) == wanted


def fields(kind: Kind, text: str) -> Matches:
    """A field selector to a test of objects; ApiError 400 for a field that the kind can't be selected by."""
    known = ("metadata.name", *(("metadata.namespace",) if kind.namespaced else ()), *_FIELDS.get(kind, ()))
    tests = []
    for part in filter(None, text.split(",")):
        name, sign, value = re.split(r"(!=|==|=)", part, maxsplit=1) if re.search("=", part) else (part, "", "")
        if not sign:
            raise ApiError("BadRequest", f"invalid selector: {text!r}; can't understand {part!r}")
        if name not in known:
            raise ApiError("BadRequest", f'"{name}" is not a known field selector: only {", ".join(map(repr, known))}')
        tests.append((name.split("."), value, sign != "!="))
    return lambda stored: all((_text(stored, path) == value) == wanted for path, value, wanted in tests)


def _text(stored: Any, path: list[str]) -> str:
    for step in path:
        stored = stored.get(step, "") if isinstance(stored, Mapping) else ""
    return str(stored).lower() if isinstance(stored, bool) else str(stored)
