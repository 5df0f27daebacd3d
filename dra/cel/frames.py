"""What closures of an expression share: the frame they read, and what cel-go says when something has no meaning.

A frame is a list: the device's view first, then a slot for each name that a comprehension declares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dra.cel.errors import CelAbortError, CelRuntimeError

type Frame = list[Any]
type Eval = Callable[[Frame], object]

UNSET: Final = object()


def no_overload(function: str = "") -> CelRuntimeError:
    """The error of an operation that has no meaning for its operands."""
    return CelRuntimeError(f"no such overload: {function}" if function else "no such overload")


def constant(value: object) -> Eval:
    """A closure that gives the value."""
    return lambda _frame: value


def captured(evaluate: Eval, frame: Frame) -> object:
    """The value, or the error as a value."""
    try:
        return evaluate(frame)
    except CelRuntimeError as error:
        return error


def finished(evaluate: Eval, frame: Frame) -> object:
    """The value of a whole expression; whatever ends it otherwise is a CelRuntimeError."""
    try:
        return evaluate(frame)
    except CelAbortError as error:
        raise CelRuntimeError(str(error)) from error
    except RecursionError:
        raise CelRuntimeError("expression nested too deeply") from None
