"""Closures of `&&`, `||`, `?:` and what else need not evaluate all its operands. Errors are exceptions.

Follows cel-go interpreter/interpretable.go (`evalAnd`, `evalOr`, `evalFold`'s condition), attributes.go
(`conditionalAttribute`) and cel/library.go (`evalOptionalOr`).
"""

from __future__ import annotations

from dra.cel.errors import CelRuntimeError
from dra.cel.frames import Eval, Frame, no_overload
from dra.cel.values import Optional


def every(terms: tuple[Eval, ...]) -> Eval:
    """`&&`: false if a term is false, whatever the others; else the first error; else true."""
    return _joined(terms, decisive=False)


def some(terms: tuple[Eval, ...]) -> Eval:
    """`||`: true if a term is true, whatever the others; else the first error; else false."""
    return _joined(terms, decisive=True)


def _joined(terms: tuple[Eval, ...], *, decisive: bool) -> Eval:
    indecisive = not decisive

    def run(frame: Frame) -> bool:
        error: CelRuntimeError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelRuntimeError as raised:
                error = error or raised
                continue
            if value is decisive:
                return decisive
            if value is not indecisive and error is None:
                error = no_overload()
        if error is not None:
            raise error
        return indecisive

    return run


def choice(condition: Eval, when_true: Eval, when_false: Eval) -> Eval:
    """`?:`."""

    def run(frame: Frame) -> object:
        value = condition(frame)
        if value is True:
            return when_true(frame)
        if value is False:
            return when_false(frame)
        raise no_overload()

    return run


def not_strictly_false(operand: Eval) -> Eval:
    """Whether a loop goes on: not if the operand is false; yes if it is an error."""

    def run(frame: Frame) -> bool:
        try:
            return operand(frame) is not False
        except CelRuntimeError:
            return True

    return run


def alternative(optional: Eval, other: Eval, *, unwrap: bool) -> Eval:
    """`or`, and with `unwrap` `orValue`: the other only where the optional has no value."""

    def run(frame: Frame) -> object:
        value = optional(frame)
        if not isinstance(value, Optional):
            raise no_overload()
        if not value.present:
            return other(frame)
        return value.value if unwrap else value

    return run
