"""Rules that CEL states: device selectors compiled as they are written, and the rules of our own CRDs.

Selectors follow validateCELExpression of kubernetes/pkg/apis/resource/validation (1.37.2). `dra.cel` knows devices and
no `self`, so each rule of a CRD stands here in Python under its own text; one that is missing here is a KeyError, which
the test of the whole CRD meets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra.cel import CelCompileError, CelTypeError, compile_expression
from dra.objects import physical_gpu_name
from dra.quantity import parse_quantity

type Cause = tuple[str, str, str]  # reason, message, field

_MOST_COST: Final = 1_000_000  # resource/v1 CELSelectorExpressionMaxCost


def expression_causes(value: Any, at: str) -> Iterator[Cause]:
    """What the compiler has against each `cel.expression` below the value; what drivers are told is theirs."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from expression_causes(each, f"{at}[{index}]")
    for name, each in value.items() if isinstance(value, dict) else ():
        if name == "cel" and each.get("expression"):
            yield from _compiled(each["expression"], f"{at}.cel.expression")
        elif name != "opaque":
            yield from expression_causes(each, f"{at}.{name}")


def _compiled(text: str, at: str) -> Iterator[Cause]:
    try:
        if compile_expression(text, environment="new").max_cost > _MOST_COST:
            yield "FieldValueForbidden", "Forbidden: too complex, exceeds cost limit", at
    except CelCompileError as error:
        own = isinstance(error, CelTypeError) and error.message.startswith("must evaluate")
        why = error.message if own else f"compilation failed: ERROR: <input>:{error}"
        yield "FieldValueInvalid", f'Invalid value: "{text}": {why}', at


def rule_causes(value: Any, rules: Sequence[Mapping[str, str]], at: str) -> Iterator[Cause]:
    """The rules of a CRD that the value at that place breaks (x-kubernetes-validations)."""
    for rule in rules:
        if not RULES[rule["rule"]](value):
            yield "FieldValueInvalid", f"Invalid value: {rule['message']}", f"{at}{rule['at']}".lstrip(".")


def _ordered(low: str, high: str) -> Callable[[Any], bool]:
    def holds(amounts: Any) -> bool:
        both = [parse_quantity(amounts[name]) for name in (low, high) if name in amounts]
        return both == sorted(both)

    return holds


def _in_steps(share: Any) -> bool:
    return not any(share[name] % share["step"] for name in ("min", "default", "max"))


def _memory(low: str, high: str) -> str:
    return f"!has(self.{low}) || !has(self.{high}) || quantity(self.{low}).compareTo(quantity(self.{high})) <= 0"


def _is_named_as_its_card(card: Any) -> bool:
    spec = card["spec"]
    return bool(card["metadata"].get("name") == physical_gpu_name(spec["nodeName"], spec["pciAddress"]))


RULES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "self.metadata.name == self.spec.nodeName + '-' + self.spec.pciAddress.replace(':', '-').replace('.', '-')":
        _is_named_as_its_card,
    "!has(self.spec.replacedBy) || self.spec.replacedBy != self.metadata.name":
        lambda self: self["spec"].get("replacedBy") != self["metadata"].get("name"),
    "self.state != 'paused' || (has(self.message) && self.message != '')":
        lambda self: self["state"] != "paused" or bool(self.get("message")),
    "(self.state == 'replaced') == has(self.replacedBy)":
        lambda self: (self["state"] == "replaced") == ("replacedBy" in self),
    "!has(self.share) || self.mode in ['share', 'any']":
        lambda self: "share" not in self or self["mode"] in {"share", "any"},
    "self.mode != 'share' || self.count.max == 1":
        lambda self: self["mode"] != "share" or self["count"]["max"] == 1,
    "!has(self.namespaces) || size(self.namespaces) == 0 || has(self.deviceClass.generated)":
        lambda self: not self.get("namespaces") or "generated" in self["deviceClass"],
    "has(self.name) != has(self.generated)": lambda self: ("name" in self) != ("generated" in self),
    "!self.split('/')[0].endsWith('kubernetes.io')":
        lambda self: not self.partition("/")[0].endswith("kubernetes.io"),
    "self.min <= self.default && self.default <= self.max":
        lambda self: self["min"] <= self["default"] <= self["max"],
    "self.min % self.step == 0 && self.default % self.step == 0 && self.max % self.step == 0": _in_steps,
    _memory("min", "max"): _ordered("min", "max"),
    _memory("min", "default"): _ordered("min", "default"),
    _memory("default", "max"): _ordered("default", "max"),
}  # fmt: skip
