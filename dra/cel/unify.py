"""Which type may stand for which, and what type parameters stand for meanwhile. Knows no syntax tree.

Follows cel-go checker/types.go and checker/mapping.go: dyn passes for everything, and null for what has no value of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dra.cel import types
from dra.cel.types import Kind, Type, is_dyn

_DEEPEST_TEXT = 8
_MAX_STEPS = 400_000
_NULLABLE = {Kind.OPAQUE, Kind.STRUCT, Kind.ANY, Kind.DURATION, Kind.TIMESTAMP, Kind.NULL}
_NAMES = {
    Kind.ANY: "any",
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}


def text_of(given: Type, depth: int = 0) -> str:
    """The type as messages of the checker name it (checker/format.go `FormatCELType`); its deepest parts as "..."."""
    if given.kind in _NAMES:
        return _NAMES[given.kind]
    if given.kind is Kind.TYPE_PARAM or not given.params:
        return f"wrapper({given.name})" if given.nullable else given.name
    params = ", ".join(text_of(each, depth + 1) for each in given.params) if depth < _DEEPEST_TEXT else "..."
    return f"{given.name}({params})"


def is_optional(given: Type) -> bool:
    """Whether it is optional_type(...)."""
    return given.kind is Kind.OPAQUE and given.name == "optional_type"


def unwrapped(given: Type) -> Type:
    """What an optional holds; any other type as it is."""
    return given.params[0] if is_optional(given) else given


def equivalent(one: Type, other: Type) -> bool:
    """The same type, but for the names of type parameters (`IsEquivalentType`)."""
    if one.kind is not other.kind or len(one.params) != len(other.params):
        return False
    if one.kind is not Kind.TYPE_PARAM and one.name != other.name:
        return False
    return all(map(equivalent, one.params, other.params))


def most_general(one: Type, other: Type) -> Type:
    """The less specific of two types that unify."""
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind is Kind.TYPE_PARAM:
        return True
    if is_dyn(other) or other.kind is Kind.TYPE_PARAM or one.kind is not other.kind:
        return False
    if one.kind is Kind.TYPE:
        return True
    same = one.name == other.name and len(one.params) == len(other.params)
    return same and all(map(_less_specific, one.params, other.params))


class TypesTooLargeError(Exception):
    """Types hold each other so often that comparing them would take too long."""


class Substitution:
    """What each type parameter stands for, by name. A failed attempt leaves it as it was."""

    __slots__ = ("_changes", "_fresh", "_known", "_steps")

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}
        self._changes: list[tuple[Type, Type | None]] = []
        self._fresh = 0
        self._steps = 0

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise TypesTooLargeError

    def fresh(self) -> Type:
        """A new type parameter."""
        self._fresh += 1
        return types.type_param(f"_var{self._fresh - 1}")

    def instantiate(self, signature: Sequence[Type]) -> tuple[Type, ...]:
        """The types with a fresh parameter for each of their parameters."""
        names: dict[str, Type] = {}
        return tuple(self._instance(each, names) for each in signature)

    def _instance(self, given: Type, names: dict[str, Type]) -> Type:
        if given.kind is Kind.TYPE_PARAM:
            if given.name not in names:
                names[given.name] = self.fresh()
            return names[given.name]
        if not given.params:
            return given
        return replace(given, params=tuple(self._instance(each, names) for each in given.params))

    def resolve(self, given: Type, *, finally_: bool = False) -> Type:
        """The type with known parameters replaced; `finally_`, unknown ones become dyn."""
        self._count()
        if given.kind is Kind.TYPE_PARAM:
            known = self._known.get(given)
            if known is not None:
                return self.resolve(known, finally_=finally_)
            return types.DYN if finally_ else given
        if not given.params:
            return given
        params = tuple(self.resolve(each, finally_=finally_) for each in given.params)
        return given if params == given.params else replace(given, params=params)

    def assign(self, ours: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """Whether each type may be passed for the wanted one; if so, what was learned of parameters is kept."""
        del self._changes[:]
        if len(ours) == len(wanted) and all(map(self._assignable, ours, wanted)):
            return True
        for param, before in reversed(self._changes):
            if before is None:
                del self._known[param]
            else:
                self._known[param] = before
        return False

    def _learn(self, param: Type, known: Type) -> None:
        self._changes.append((param, self._known.get(param)))
        self._known[param] = known

    def _assignable(self, one: Type, other: Type) -> bool:
        self._count()
        if other.kind is Kind.TYPE_PARAM:
            valid, known = self._stands_for(one, other)
            if valid or known:
                return valid
        if one.kind is Kind.TYPE_PARAM:
            return self._stands_for(other, one)[0]
        if _passes_anywhere(one) or _passes_anywhere(other):
            return True
        if one.kind is Kind.NULL:
            return other.kind in _NULLABLE or other.nullable
        if other.kind is Kind.NULL:
            return one.kind in _NULLABLE or one.nullable
        return self._same_shape(one, other)

    def _same_shape(self, one: Type, other: Type) -> bool:
        if one.kind is Kind.TYPE:
            return other.kind is Kind.TYPE
        if one.kind is not other.kind or one.name != other.name or len(one.params) != len(other.params):
            return False
        return all(map(self._assignable, one.params, other.params))

    def _stands_for(self, given: Type, param: Type) -> tuple[bool, bool]:
        """Whether the parameter may stand for the type, and whether it stood for one before."""
        if given == param:
            return True, True
        known = self._known.get(param)
        if known is None:
            free = self._free_of(param, given)
            if free:
                self._learn(param, given)
            return free, False
        if given == known:
            return True, True
        if not self._assignable(given, known):
            return False, True
        general = most_general(given, known)
        if self._free_of(param, general):
            self._learn(param, general)
        return True, True

    def _free_of(self, param: Type, within: Type) -> bool:
        """Whether the parameter occurs nowhere in the type."""
        self._count()
        if param == within:
            return False
        if within.kind is Kind.TYPE_PARAM:
            known = self._known.get(within)
            return known is None or self._free_of(param, known)
        return all(self._free_of(param, each) for each in within.params)


def _passes_anywhere(given: Type) -> bool:
    return is_dyn(given) or given.kind is Kind.ERROR
