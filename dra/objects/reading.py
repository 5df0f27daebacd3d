"""The careful way to read an object: as lenient as the API server's JSON, and exact about what is wrong and where.

`dra.objects.meta.decode` comes here only when the quick way fails. As in Go, null counts as absent and a quantity may
be a bare number. May not know kinds: it follows the types of the struct it is given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import inspect

from dra.errors import InvalidObjectError

_INT64_DIGITS: Final = 20
_INT64: Final = range(-(2**63), 2**63)
_SHOWN: Final = 80


class _Number(str):
    """A JSON number as it was spelled."""

    __slots__ = ()


def read_carefully[S: msgspec.Struct](body: bytes, kind: type[S]) -> S:
    """The object, or InvalidObjectError with kind, JSON pointer, value and rule; for bad JSON with line and column."""
    return of_plain(parse_json(body, kind.__name__), kind)


def of_plain[S: msgspec.Struct](value: object, kind: type[S]) -> S:
    """The struct made of plain JSON values, as `parse_json` gives them; InvalidObjectError as `read_carefully`."""
    try:
        return msgspec.convert(_Walk(kind.__name__).value(value, inspect.type_info(kind), ""), kind)
    except msgspec.ValidationError as error:
        raise InvalidObjectError(f"{kind.__name__}: {error}") from error
    except RecursionError as error:
        raise InvalidObjectError(f"{kind.__name__}: nested too deeply to be an API object") from error


def parse_json(body: bytes, kind: str) -> Any:
    """Plain JSON values with numbers as spelled; InvalidObjectError with line and column."""
    try:
        return json.loads(body.decode(), parse_float=_Number, parse_int=_Number, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InvalidObjectError(
            f"{kind}: no JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidObjectError(f"{kind}: no UTF-8 at byte {error.start}: {error.reason}") from error
    except RecursionError as error:
        raise InvalidObjectError(f"{kind}: nested too deeply to be an API object") from error


def pointer_of(*parts: str | int) -> str:
    """The JSON pointer (RFC 6901) made of these steps."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


class _Walk:
    """Makes plain values that msgspec takes for the types, or tells the first place where that can't be."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def value(self, value: object, type_: inspect.Type, at: str) -> object:
        match type_:
            case inspect.Metadata(type=inner):
                quantity = (type_.extra or {}).get("form") == "quantity"
                return self.value(str(value) if quantity and isinstance(value, _Number) else value, inner, at)
            case inspect.UnionType(types=members):
                return self.value(value, _not_none(members), at)
            case inspect.StructType():
                return self._struct(self._must(value, dict, "an object", at), type_, at)
            case inspect.DictType(value_type=inner):
                entries = self._must(value, dict, "an object", at).items()
                return {key: self.value(entry, inner, at + pointer_of(key)) for key, entry in entries}
            case inspect.VarTupleType(item_type=inner):
                items = enumerate(self._must(value, list, "a list", at))
                return [self.value(item, inner, at + pointer_of(index)) for index, item in items]
            case _:
                return self._leaf(value, type_, at)

    def _struct(self, value: dict[str, object], type_: inspect.StructType, at: str) -> object:
        out = {}
        for field in type_.fields:
            given = value.get(field.encode_name)
            if given is not None:
                out[field.encode_name] = self.value(given, field.type, at + pointer_of(field.encode_name))
            elif field.required:
                raise self._fault(at + pointer_of(field.encode_name), None, "is required")
        return out

    def _leaf(self, value: object, type_: inspect.Type, at: str) -> object:
        match type_:
            case inspect.LiteralType(values=choices) if value not in choices:
                raise self._fault(at, value, "must be one of " + ", ".join(map(str, choices)))
            case inspect.StrType():
                return self._text(value, at)
            case inspect.BoolType():
                return self._must(value, bool, "true or false", at)
            case inspect.IntType():
                return self._integer(value, at)
            case _:
                return _natural(value)

    def _text(self, value: object, at: str) -> str:
        if not isinstance(value, str) or isinstance(value, _Number):
            raise self._fault(at, value, "must be a string")
        if not _is_utf8(value):
            raise self._fault(at, value, "must be text without lone surrogates")
        return value

    def _integer(self, value: object, at: str) -> int:
        if isinstance(value, _Number) and value.lstrip("-").isdigit() and len(value) <= _INT64_DIGITS:
            number = int(value)
            if number in _INT64:
                return number
        raise self._fault(at, value, "must be an integer of 64 bits")

    def _must[T](self, value: object, type_: type[T], words: str, at: str) -> T:
        if isinstance(value, type_):
            return value
        raise self._fault(at, value, f"must be {words}")

    def _fault(self, at: str, value: object, rule: str) -> InvalidObjectError:
        shown = value if isinstance(value, _Number) else ascii(value)
        shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
        said = f"is {shown}, {rule}" if value is not None else rule
        return InvalidObjectError(f"{self._kind}: {at or '/'} {said}", pointer=at)


def _not_none(members: Iterable[inspect.Type]) -> inspect.Type:
    """The type of an optional field; our structs have no other unions."""
    return next(member for member in members if not isinstance(member, inspect.NoneType))


def _natural(value: object) -> object:
    """Free-form JSON (parameters of a driver) with numbers as numbers."""
    if isinstance(value, dict):
        return {key: _natural(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_natural(item) for item in value]
    if not isinstance(value, _Number):
        return value
    number = int(value) if value.lstrip("-").isdigit() and len(value) <= _INT64_DIGITS else float(value)
    if number in {math.inf, -math.inf}:
        raise InvalidObjectError(f"the number {value[:_SHOWN]} is larger than any that can be held")
    return number


def _no_constant(name: str) -> object:
    raise InvalidObjectError(f"{name} is no JSON value")


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
