"""Field names and types of the served kinds: what strict validation refuses, what Go's decoder takes, how lists merge.

Fed by `simulator/schema.json` (see `scripts/simulator_schema.py`), which its edge reads. Rules between fields are in
`simulator.api.admission`, those of custom resources in `simulator.api.rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from dra.errors import DraError
from dra.quantity import parse_quantity
from simulator.api.body import Doubled
from simulator.api.failures import ApiError, invalid
from simulator.api.rules import rule_causes
from simulator.kinds import Kind

type Spec = Mapping[str, Any]

_ANY: Final[Spec] = {"type": "any"}
_PYTHON: Final = {"string": str, "boolean": bool, "list": list, "map": dict, "object": dict}
_GO: Final = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


@dataclass(slots=True)
class Findings:
    """What a walk over an object found: `strict` in the server's words, `faults` as (reason, message, field)."""

    strict: list[str] = field(default_factory=list)
    faults: list[tuple[str, str, str]] = field(default_factory=list)


class Schema:
    """The types of all served kinds."""

    def __init__(self, kinds: Mapping[str, str], types: Mapping[str, Spec]) -> None:
        self._kinds, self._types = kinds, types

    @classmethod
    def parse(cls, data: bytes) -> Schema:
        """Read the data file."""
        content = msgspec.json.decode(data)
        return cls(content["kinds"], content["types"])

    def root(self, kind: Kind) -> Spec:
        """The type of the whole object."""
        return {"type": "object", "of": self._kinds[f"{kind.api_version}/{kind.kind}"]}

    def child(self, spec: Spec, name: str) -> Spec:
        """The type of one field of an object or one value of a map; any where unknown."""
        if spec["type"] == "object":
            found: Spec = self._types[spec["of"]]["fields"].get(name, _ANY)
            return found
        return spec["items"] if spec["type"] == "map" else _ANY

    def read(self, kind: Kind, given: Any, *, partial: bool = False) -> tuple[dict[str, Any], Findings]:
        """The object as the decoder understands it, without nulls and unknown fields, and what was wrong with it.

        A `partial` object, as it is applied, gets no defaults and may lack what its kind requires.
        ApiError 400 where a value has another type than its field, as Go's decoder refuses it.
        """
        findings = Findings()
        walk = _Walk(self._types, kind, findings, partial=partial)
        return walk.value(given, self.root(kind), ""), findings


class _Walk:
    def __init__(self, types: Mapping[str, Spec], kind: Kind, findings: Findings, *, partial: bool) -> None:
        self._types, self._kind, self._findings, self._partial = types, kind, findings, partial

    def value(self, given: Any, spec: Spec, at: str) -> Any:
        match spec["type"]:
            case "object":
                return self._object(self._must(given, spec, at), self._types[spec["of"]], at)
            case "map":
                self._doubled(given, at)
                entries = self._must(given, spec, at).items()
                return {key: self.value(each, spec["items"], f"{at}.{key}") for key, each in entries}
            case "list":
                items = self._must(given, spec, at)
                self._unique(items, spec, at)
                self._bounds(len(items), spec, ("minItems", "maxItems"), at)
                return [self.value(each, spec["items"], f"{at}[{index}]") for index, each in enumerate(items)]
            case "any":
                return _plain(given)
        return self._scalar(given, spec, at)

    def _object(self, given: Mapping[str, Any], type_: Spec, at: str) -> dict[str, Any]:
        self._doubled(given, at)
        made = {}
        for name, each in given.items():
            place = f"{at}.{name}".lstrip(".")
            if name not in type_["fields"]:
                self._findings.strict.append(f'unknown field "{place}"')
            elif each is not None:
                made[name] = self.value(each, type_["fields"][name], place)
        return made if self._partial else self._completed(made, type_, at)

    def _completed(self, made: dict[str, Any], type_: Spec, at: str) -> dict[str, Any]:
        for name, spec in type_["fields"].items():
            if name not in made and "default" in spec:
                made[name] = self.value(spec["default"], spec, f"{at}.{name}".lstrip("."))
        missing = [name for name in type_["required"] if name not in made]
        for name in missing:
            self._findings.faults.append(("FieldValueRequired", "Required value", f"{at}.{name}".lstrip(".")))
        if not missing and not self._findings.faults:  # rules meet whole objects alone
            self._findings.faults += rule_causes(made, type_.get("rules", ()), at)
        return made

    def _scalar(self, given: Any, spec: Spec, at: str) -> Any:
        if spec["type"] in {"quantity", "intstr"}:
            return self._number_or_text(given, spec, at)
        if spec["type"] in {"integer", "number"}:
            if isinstance(given, bool) or not isinstance(given, int | float):
                raise self._mismatch(given, spec, at)
            if spec["type"] == "integer" and not float(given).is_integer():
                raise self._mismatch(given, spec, at)
            self._bounds(given, spec, ("minimum", "maximum"), at)
            if given % spec.get("multipleOf", 1):
                message = f"Invalid value: {given}: {at} in body should be a multiple of {spec['multipleOf']}"
                self._findings.faults.append(("FieldValueInvalid", message, at))
            return int(given) if spec["type"] == "integer" else given
        self._must(given, spec, at)
        if isinstance(given, str):
            self._text(given, spec, at)
        return given

    def _number_or_text(self, given: Any, spec: Spec, at: str) -> Any:
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise self._mismatch(given, spec, at)
        if spec["type"] == "intstr":
            return given
        try:
            parse_quantity(str(given))
        except DraError as error:
            raise self._refused(f"quantities must match the regular expression of a quantity: {error}") from error
        return str(given)

    def _text(self, given: str, spec: Spec, at: str) -> None:
        if "enum" in spec and given not in spec["enum"]:
            known = ", ".join(f'"{each}"' for each in spec["enum"])
            self._findings.faults.append(
                ("FieldValueNotSupported", f'Unsupported value: "{given}": supported values: {known}', at)
            )
        self._bounds(len(given), spec, ("minLength", "maxLength"), at)
        if "pattern" in spec and not re.search(spec["pattern"], given):
            message = f"Invalid value: \"{given}\": {at} in body should match '{spec['pattern']}'"
            self._findings.faults.append(("FieldValueInvalid", message, at))
        self._findings.faults += rule_causes(given, spec.get("rules", ()), at)

    def _unique(self, items: list[Any], spec: Spec, at: str) -> None:
        for index, each in enumerate(items if spec.get("set") else ()):
            if each in items[:index]:
                fault = ("FieldValueDuplicate", f'Duplicate value: "{each}"', f"{at}[{index}]")
                self._findings.faults.append(fault)

    def _bounds(self, size: float, spec: Spec, names: tuple[str, str], at: str) -> None:
        low, high = (spec.get(name) for name in names)
        if low is not None and size < low:
            message = f"Invalid value: {size}: {at} in body should be greater than or equal to {low}"
            self._findings.faults.append(("FieldValueInvalid", message, at))
        if high is not None and size > high:
            message = f"Invalid value: {size}: {at} in body should be less than or equal to {high}"
            self._findings.faults.append(("FieldValueInvalid", message, at))

    def _doubled(self, given: Any, at: str) -> None:
        if isinstance(given, Doubled):
            self._findings.strict += [f'duplicate field "{f"{at}.{key}".lstrip(".")}"' for key in given.keys_twice]

    def _must(self, given: Any, spec: Spec, at: str) -> Any:
        if not isinstance(given, _PYTHON[spec["type"]]):
            raise self._mismatch(given, spec, at)
        return given

    def _mismatch(self, given: Any, spec: Spec, at: str) -> ApiError:
        found = _GO.get(type(given), "null")
        said = f"json: cannot unmarshal {found} into Go struct field {self._kind.kind}.{at} of type {spec['type']}"
        return self._refused(said)

    def _refused(self, why: str) -> ApiError:
        kind = self._kind
        start = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        return ApiError("BadRequest", f"{start}: {why}")


def _plain(given: Any) -> Any:
    if isinstance(given, dict):
        return {key: _plain(value) for key, value in given.items()}
    return [_plain(value) for value in given] if isinstance(given, list) else given


def refuse_faults(kind: Kind, name: str, findings: Findings) -> None:
    """ApiError 422 naming every fault."""
    if findings.faults:
        raise invalid(kind, name, findings.faults)


def strict_refusal(kind: Kind, findings: Findings) -> ApiError:
    """400 for unknown and doubled fields (fieldValidation=Strict)."""
    what = ", ".join(findings.strict)
    return ApiError(
        "BadRequest",
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: {what}',
    )


def leaves(schema: Schema, spec: Spec, value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every field that a manager can own, as `FieldsV1` names it, with its value (structured-merge-diff, fieldpath).

    Items of keyed lists and of sets are fields of their own; an atomic list or an unknown value is one field.
    """
    if spec["type"] in {"object", "map"} and isinstance(value, dict) and (value or spec["type"] == "map"):
        for name, each in value.items():
            for path, leaf in leaves(schema, schema.child(spec, name), each):
                yield (f"f:{name}", *path), leaf
        if not value:
            yield (), value
        return
    if spec["type"] == "list" and "keys" in spec:
        for each in value:
            step = item_step(spec, each)
            yield (step, "."), None
            for path, leaf in leaves(schema, spec["items"], each):
                yield (step, *path), leaf
        return
    if spec["type"] == "list" and spec.get("set"):
        for each in value:
            yield ("v:" + msgspec.json.encode(each).decode(),), each
        return
    yield (), value


def item_step(spec: Spec, item: Mapping[str, Any]) -> str:
    """The `k:` step of one item of a keyed list."""
    keys = {key: item[key] for key in sorted(spec["keys"]) if key in item}
    return "k:" + msgspec.json.encode(keys).decode()
