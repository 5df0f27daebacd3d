"""Closures of comprehensions. An accumulator is evaluated when it is first read, and may hold an error meanwhile.

Follows `evalFold` and `folder` of cel-go interpreter/interpretable.go. Loops of macros have closures of their
own, which give the same value or error in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dra.cel.errors import CelRuntimeError
from dra.cel.frames import UNSET, Eval, Frame, captured, no_overload
from dra.cel.values import CelMap, GrowingList, GrowingMap, type_name

type Source = Callable[[Frame], Iterable[object]]


@dataclass(frozen=True, slots=True)
class Slots:
    """Where a comprehension keeps its names in the frame. `second` is None with one name."""

    accumulator: int
    first: int
    second: int | None


@dataclass(frozen=True, slots=True)
class Parts:
    """What a comprehension evaluates."""

    source: Eval
    condition: Eval
    step: Eval
    result: Eval


def accumulator(slot: int, init: Eval, *, grows: bool) -> Eval:
    """The closure of the accumulator's name. An empty list or map that `grows` is extended in place."""

    def run(frame: Frame) -> object:
        value = frame[slot]
        if value is UNSET:
            value = captured(init, frame)
            if grows and isinstance(value, tuple | CelMap) and not value:
                value = GrowingList() if isinstance(value, tuple) else GrowingMap()
            frame[slot] = value
        if isinstance(value, CelRuntimeError):
            raise value
        return value

    return run


def bound(slot: int, result: Eval) -> Eval:
    """A comprehension that only names a value."""

    def run(frame: Frame) -> object:
        frame[slot] = UNSET
        return result(frame)

    return run


def loop(parts: Parts, slots: Slots) -> Eval:
    """Any comprehension. A condition that fails does not end it, a step that fails makes the accumulator an error."""
    put = _putter(slots)
    source, condition, step, result = parts.source, parts.condition, parts.step, parts.result

    def run(frame: Frame) -> object:
        items = source(frame)
        frame[slots.accumulator] = UNSET
        for item in iterated(items, pairs=slots.second is not None):
            put(frame, item)
            goes_on = captured(condition, frame)
            if isinstance(goes_on, bool) and not goes_on:
                break
            frame[slots.accumulator] = captured(step, frame)
        value = result(frame)
        return value.frozen() if isinstance(value, GrowingList | GrowingMap) else value

    return run


def iterated(value: object, *, pairs: bool) -> Iterable[object]:
    """What a loop goes over: elements or keys, or with `pairs` index and element, key and value."""
    if isinstance(value, tuple):
        return enumerate(value) if pairs else value
    if isinstance(value, CelMap):
        return value.items() if pairs else value.keys()
    go_type = f"types.{type_name(value).rpartition('.')[2].title()}"
    if pairs:
        raise CelRuntimeError(f"unsupported comprehension range type: {go_type}")
    raise CelRuntimeError(f"got '{go_type}', expected iterable type")


def _putter(slots: Slots) -> Callable[[Frame, object], None]:
    """A function that puts an item's one or two values into the frame."""
    first, second = slots.first, slots.second

    def put_one(frame: Frame, item: object) -> None:
        frame[first] = item

    def put_two(frame: Frame, item: object) -> None:
        assert isinstance(item, tuple)
        assert second is not None
        frame[first], frame[second] = item

    return put_one if second is None else put_two


# --- loops of macros ---


def quantified(source: Eval, predicate: Eval, slots: Slots, *, until: bool) -> Eval:
    """The loops of all (until a predicate is false) and exists (until one is true); else an error counts."""
    put = _putter(slots)
    pairs = slots.second is not None

    def run(frame: Frame) -> bool:
        error: CelRuntimeError | None = None
        for item in iterated(source(frame), pairs=pairs):
            put(frame, item)
            try:
                value = predicate(frame)
            except CelRuntimeError as raised:
                error = error or raised
                continue
            if value is until:
                return until
            if value.__class__ is not bool and error is None:
                error = no_overload()
        if error is not None:
            raise error
        return not until

    return run


def counted_one(source: Eval, predicate: Eval, slots: Slots) -> Eval:
    """exists_one: every predicate is evaluated, and the last error counts."""
    selected = gathered(source, predicate, _one, slots)

    def run(frame: Frame) -> bool:
        found = selected(frame)
        assert isinstance(found, tuple)
        return len(found) == 1

    return run


def gathered(source: Eval, only: Eval | None, value: Eval, slots: Slots) -> Eval:
    """map, filter and transformList: a list of the values where the predicate `only` holds."""
    put = _putter(slots)
    pairs = slots.second is not None

    def run(frame: Frame) -> tuple[object, ...]:
        error: CelRuntimeError | None = None
        found: list[object] = []
        for item in iterated(source(frame), pairs=pairs):
            put(frame, item)
            if only is not None:
                chosen = captured(only, frame)
                if chosen is not True:
                    error = error if chosen is False else _error(chosen)
                    continue
            try:
                found.append(value(frame))
            except CelRuntimeError as raised:
                error = error or raised
        if error is not None:
            raise error
        return tuple(found)

    return run


def _error(value: object) -> CelRuntimeError:
    return value if isinstance(value, CelRuntimeError) else no_overload()


def _one(_frame: Frame) -> object:
    return 1
