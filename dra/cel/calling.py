"""Closures of function calls: which overload the values at hand mean, found once for each combination of classes.

Follows cel-go interpreter/interpretable.go (`evalUnary` and its like) and common/decls: a call whose values fit no
overload is an error. Where what the operands are is certain beforehand, the overload is called without asking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dra.cel.environment import ENVIRONMENTS
from dra.cel.errors import CelAbortError, CelRuntimeError
from dra.cel.frames import Eval, Frame, captured, no_overload
from dra.cel.functions import Library, Overload
from dra.cel.libraries import conversions, list_extensions, standard
from dra.cel.types import Kind, Type, is_dyn
from dra.cel.values import CelMap, Duration, Timestamp, check_hashable, equal, type_name, type_of

type Function = Callable[..., object]

# Where cel-go's error of a call does not name the function: by function, and by the class of the first operand.
_UNNAMED: Final = frozenset({"contains", "startsWith", "endsWith", "matches", "find", "findAll", "@in"})
_RECEIVERS: Final = (str, Timestamp, Duration)
# Which operand upstream's cost tracker takes for a list, and panics if it is none (cel-go ext/lists.go), by overload.
_TRACKED: Final = {
    "list_distinct": 0,
    **{each.id: 0 for each in list_extensions.FUNCTIONS["sort"]},
    **{each.id: 1 for each in list_extensions.FUNCTIONS["@sortByAssociatedKeys"]},
}
_ONE_BINDING: Final[Library] = {**standard.FUNCTIONS, **conversions.FUNCTIONS}


class Dispatch:
    """The overloads that a call may mean.

    Standard functions have one binding for all their overloads, so that what they do goes by the values alone: these
    may be of other types than the checker inferred, since dyn is taken for any (common/stdlib/standard.go).
    """

    __slots__ = ("_by_class", "_candidates", "_deep", "_function", "_overloads", "tracked")

    def __init__(self, function: str, overloads: Sequence[Overload]) -> None:
        self._function = function
        self._overloads = overloads
        others = _ONE_BINDING.get(function, ())
        self._candidates = (*overloads, *(each for each in others if each not in overloads))
        self._by_class: dict[tuple[type, ...], Function] = {}
        self._deep = any(_looks_inside(param) for each in self._candidates for param in each.params)
        self.tracked = _TRACKED.get(overloads[0].id) if len(overloads) == 1 else None

    def certain(self, given: Sequence[Type | None]) -> Function | None:
        """The only function that values of these types can mean; None where a type is not known for certain."""
        if len(self._overloads) != 1 or self._deep:
            return None
        only = self._overloads[0]
        fits = len(only.params) == len(given) and (not only.guarded or all(map(_takes, only.params, given)))
        return only.call if fits else None

    def result(self, given: Sequence[Type | None]) -> Type | None:
        """The type that every value of the call has; None where that is not known."""
        results = {each.result for each in self._candidates}
        if len(results) == 1:
            return results.pop()
        return self._overloads[0].result if self.certain(given) is not None else None

    def find(self, *values: object) -> Function:
        """The function for the values, or CelRuntimeError."""
        classes = tuple(map(type, values))
        known = self._by_class.get(classes)
        if known is not None:
            return known
        for overload in self._candidates:
            if overload.takes(values):
                if not self._deep or not any(issubclass(each, tuple | CelMap) for each in classes):
                    self._by_class[classes] = overload.call
                return overload.call
        raise self._refused(values)

    def _refused(self, values: tuple[object, ...]) -> CelRuntimeError:
        if self._function not in standard.FUNCTIONS and self._function not in _UNNAMED:
            return no_overload(f"{self._function}({', '.join(map(type_name, values))})")
        if self._function in _UNNAMED or isinstance(values[0], _RECEIVERS):
            return no_overload()
        first = type_of(values[0]).name
        known = any(each.params[0].name == first for each in ENVIRONMENTS["stored"].functions[self._function])
        return no_overload() if known else no_overload(self._function)


def _looks_inside(param: Type) -> bool:
    """Whether a list or map fits by what it holds."""
    if param.kind not in (Kind.LIST, Kind.MAP):
        return False
    return not all(is_dyn(each) or each.kind is Kind.TYPE_PARAM for each in param.params)


def _takes(param: Type, given: Type | None) -> bool:
    if is_dyn(param) or param.kind is Kind.TYPE_PARAM:
        return True
    return given is not None and given.name == param.name


def call(dispatch: Dispatch, operands: Sequence[Eval], given: Sequence[Type | None]) -> Eval:
    """A closure that evaluates the operands in order and calls what they mean."""
    if dispatch.tracked is not None:
        return _tracked(dispatch, operands, dispatch.tracked)
    function = dispatch.certain(given)
    if function is not None:
        return _direct(function, operands)
    find = dispatch.find
    if len(operands) == 1:
        return _one(find, operands[0])
    if len(operands) == 2:
        return _two(find, *operands)

    def run(frame: Frame) -> object:
        values = [each(frame) for each in operands]
        return find(*values)(*values)

    return run


def _direct(function: Function, operands: Sequence[Eval]) -> Eval:
    if len(operands) == 1:
        only = operands[0]
        return lambda frame: function(only(frame))
    if len(operands) == 2:
        left, right = operands
        return lambda frame: function(left(frame), right(frame))
    return lambda frame: function(*(each(frame) for each in operands))


def _one(find: Callable[..., Function], operand: Eval) -> Eval:
    def run(frame: Frame) -> object:
        value = operand(frame)
        return find(value)(value)

    return run


def _two(find: Callable[..., Function], left: Eval, right: Eval) -> Eval:
    def run(frame: Frame) -> object:
        one, other = left(frame), right(frame)
        return find(one, other)(one, other)

    return run


def _tracked(dispatch: Dispatch, operands: Sequence[Eval], position: int) -> Eval:
    """A call that ends the evaluation if the operand at the position is no list, or an error."""

    def run(frame: Frame) -> object:
        values = [captured(each, frame) for each in operands]
        if not isinstance(values[position], tuple):
            raise CelAbortError("internal error: interface conversion: the operand is not traits.Lister")
        for value in values:
            if isinstance(value, CelRuntimeError):
                raise value
        return dispatch.find(*values)(*values)

    return run


def call_with(dispatch: Dispatch, left: Eval, value: object, given: Type | None) -> Eval:
    """A closure of a call whose second and last operand is a constant."""
    function = dispatch.certain((given, type_of(value)))
    if function is not None:
        return lambda frame: function(left(frame), value)
    find = dispatch.find
    by_class: dict[type, Function] = {}

    def run(frame: Frame) -> object:
        operand = left(frame)
        known = by_class.get(operand.__class__)
        if known is None:
            known = find(operand, value)
            if not isinstance(operand, tuple | CelMap):
                by_class[operand.__class__] = known
        return known(operand, value)

    return run


def observed_call(dispatch: Dispatch, operands: Sequence[Eval], *, both: bool) -> Eval:
    """Like `call`; with `both` it evaluates the second operand even if the first fails, as cel-go mostly does."""

    def run(frame: Frame) -> object:
        values = [captured(each, frame) for each in operands] if both else [each(frame) for each in operands]
        for value in values:
            if isinstance(value, CelRuntimeError):
                raise value
        return dispatch.find(*values)(*values)

    return run


_EXACT: Final = frozenset({bool, int, str, bytes})


def equality(left: Eval, right: Eval, *, negated: bool) -> Eval:
    """`==` or `!=`."""
    compare = standard.not_equals if negated else standard.equals
    return lambda frame: compare(left(frame), right(frame))


def observed_equality(left: Eval, right: Eval, *, negated: bool) -> Eval:
    """Like `equality`, but both operands are evaluated even if one fails."""
    compare = standard.not_equals if negated else standard.equals

    def run(frame: Frame) -> object:
        values = captured(left, frame), captured(right, frame)
        for value in values:
            if isinstance(value, CelRuntimeError):
                raise value
        return compare(*values)

    return run


def equality_with(left: Eval, value: object, *, negated: bool) -> Eval:
    """`==` or `!=` against a constant."""
    compare = standard.not_equals if negated else standard.equals
    kind = type(value)
    if kind not in _EXACT:
        return lambda frame: compare(left(frame), value)

    def same(frame: Frame) -> bool:
        operand = left(frame)
        return operand == value if operand.__class__ is kind else compare(operand, value)

    def different(frame: Frame) -> bool:
        operand = left(frame)
        return operand != value if operand.__class__ is kind else compare(operand, value)

    return different if negated else same


def in_texts(left: Eval, values: tuple[object, ...]) -> Eval:
    """`in` for a constant list of strings, which cel-go makes a Go map: nothing but a string can be in it."""
    texts = frozenset(values)

    def run(frame: Frame) -> bool:
        operand = left(frame)
        if operand.__class__ is str:
            return operand in texts
        check_hashable(operand)
        return False

    return run


def in_primitives(left: Eval, values: tuple[object, ...]) -> Eval:
    """`in` for a constant list of bools, numbers and strings."""

    def run(frame: Frame) -> bool:
        operand = left(frame)
        check_hashable(operand)
        return any(equal(operand, each) for each in values)

    return run
