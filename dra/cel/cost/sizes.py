"""The largest sizes that the API lets the parts of `device` have, by path: what estimates know of a selector's input.

Follows the declared types and `sizeEstimator` of k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dra.cel.cost.ranges import Range

# Limits of k8s.io/api/resource/v1.
_VALUE: Final = 64  # characters of an attribute; no list of values is longer either (48 values a device)
_DOMAIN: Final = 63
_IDENTIFIER: Final = 32
_DRIVER: Final = 63
_ENTRIES: Final = 32  # attributes and capacities of a device


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """A declared type: the most elements, and where a path may go on. `any_name` is one answer for all names."""

    most: int = 0
    key: _Declared | None = None
    element: _Declared | None = None
    any_name: bool = False
    fields: Mapping[str, _Declared] = field(default_factory=dict)

    def step(self, name: str) -> _Declared | None:
        if name in {"@items", "@values"}:
            return self.element
        if name == "@keys":
            return self.key
        return self.element if self.any_name else self.fields.get(name)


_ID: Final = _Declared(most=_IDENTIFIER)
_ATTRIBUTES: Final = _Declared(most=_ENTRIES, key=_ID, element=_Declared(most=_VALUE), any_name=True)
_CAPACITY: Final = _Declared(most=_ENTRIES, key=_ID, element=_Declared())
_DOMAINS: Final = _Declared(most=_DOMAIN)
_DEVICE: Final = _Declared(
    fields={
        "driver": _Declared(most=_DRIVER),
        "allowMultipleAllocations": _Declared(most=1),
        "attributes": _Declared(most=_ENTRIES, key=_DOMAINS, element=_ATTRIBUTES),
        "capacity": _Declared(most=_ENTRIES, key=_DOMAINS, element=_CAPACITY),
    }
)


def size_at(path: Sequence[str]) -> Range | None:
    """The size of what stands at the path, such as device, attributes, @values, model. None where nothing is declared.

    The path may begin anywhere; only `device` is known. A quantity's size is declared to be 0.
    """
    if not path or path[0] != "device":
        return None
    at: _Declared | None = _DEVICE
    for name in path[1:]:
        at = at.step(name) if at is not None else None
    return None if at is None else Range(0, at.most)
