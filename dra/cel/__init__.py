"""CEL for device selectors: an engine with exactly the environment that kube-scheduler gives them. Pure.

Semantics are cel-go's as k8s.io/dynamic-resource-allocation/cel uses it.
"""

from __future__ import annotations

from dra.cel.device import CelDevice
from dra.cel.errors import CelCompileError, CelRuntimeError, CelSyntaxError, CelTypeError
from dra.cel.explain import Condition, Explanation, Seen
from dra.cel.program import Program, compile_expression

__all__ = (
    "CelCompileError",
    "CelDevice",
    "CelRuntimeError",
    "CelSyntaxError",
    "CelTypeError",
    "Condition",
    "Explanation",
    "Program",
    "Seen",
    "compile_expression",
)
