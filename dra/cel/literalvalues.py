"""Closures of list and map literals, optional entries included.

Follows `evalList` and `evalMap` of cel-go interpreter/interpretable.go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dra.cel.errors import CelRuntimeError
from dra.cel.frames import Eval, Frame
from dra.cel.values import CelMap, Optional, inner_key


def list_of(elements: Sequence[Eval], optional: Collection[int]) -> Eval:
    """[elements], of which the optional ones are left out if they have no value."""
    if not optional:
        return lambda frame: tuple([each(frame) for each in elements])

    def run(frame: Frame) -> object:
        values: list[object] = []
        for index, each in enumerate(elements):
            value = each(frame)
            if index in optional:
                if not isinstance(value, Optional):
                    raise CelRuntimeError(f"cannot initialize optional list element from non-optional value {value}")
                if not value.present:
                    continue
                value = value.value
            values.append(value)
        return tuple(values)

    return run


def map_of(entries: Sequence[tuple[Eval, Eval]], optional: Sequence[bool]) -> Eval:
    """{entries}; an optional one without value takes an equal key before it away."""

    def run(frame: Frame) -> object:
        found: dict[object, object] = {}
        for (key_of, value_of), may_lack in zip(entries, optional, strict=True):
            key, value = key_of(frame), value_of(frame)
            if may_lack:
                if not isinstance(value, Optional):
                    raise CelRuntimeError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                if not value.present:
                    found.pop(inner_key(key), None)
                    continue
                value = value.value
            found[inner_key(key)] = value
        return CelMap(found)

    return run
