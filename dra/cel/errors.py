"""Faults of CEL expressions: what does not compile, and what fails while it is evaluated.

Texts follow cel-go's, since people meet those in the cluster; the classes say which phase refused.
"""

from __future__ import annotations

from dra.errors import DraError


class CelCompileError(DraError):
    """An expression does not compile. `line` counts from 1, `column` from 1 in code points, `rule` names the rule."""

    def __init__(self, message: str, *, line: int, column: int, rule: str) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.message = message
        self.line = line
        self.column = column
        self.rule = rule


class CelSyntaxError(CelCompileError):
    """The text is no CEL expression, or a macro is used wrongly (cel-go parser)."""


class CelTypeError(CelCompileError):
    """A name is undeclared, no overload fits, or the result is no bool (cel-go checker, DRA compile.go)."""


class CelRuntimeError(DraError):
    """The evaluation failed for the values at hand: no such key, no such overload, overflow, cost limit."""


class CelAbortError(DraError):
    """Upstream's code panics here, which ends the whole evaluation: neither `||` nor `&&` absorbs it.

    `Program.matches` makes it a CelRuntimeError with the same text.
    """
