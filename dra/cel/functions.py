"""What a function of CEL is to the checker and the evaluator: overloads with types, and a Python callable each.

Each module of `dra.cel.libraries` exports `FUNCTIONS: Library`; `dra.cel.environment` gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dra.cel import types
from dra.cel.types import Kind, Type
from dra.cel.values import CelMap, type_of


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function. For a member function the receiver is the first of `params`.

    `call` gets values whose run-time types fit `params` (`accepts`), and raises CelRuntimeError.
    `id` is cel-go's overload id: costs go by it. Not `guarded` is what cel-go calls whatever the types of the arguments
    are, if only their number fits (`decls.DisableTypeGuards`, singleton bindings): `call` looks at them itself.
    """

    id: str
    params: tuple[Type, ...]
    result: Type
    call: Callable[..., object]
    member: bool = False
    guarded: bool = True

    def takes(self, values: Sequence[object]) -> bool:
        """Whether it may be called with these values."""
        return len(self.params) == len(values) and (not self.guarded or all(map(accepts, self.params, values)))


type Library = Mapping[str, tuple[Overload, ...]]


def accepts(param: Type, value: object) -> bool:
    """Whether a value may be passed for a parameter at run time (cel-go `IsAssignableRuntimeType`).

    Of a list or a map only the first entry is looked at, as there.
    """
    if types.is_dyn(param) or param.kind is Kind.TYPE_PARAM:
        return True
    if type_of(value).name != param.name:
        return False
    if isinstance(value, tuple):
        return not value or accepts(param.params[0], value[0])
    if isinstance(value, CelMap):
        return _accepts_map(param, value)
    return True


def _accepts_map(param: Type, value: CelMap) -> bool:
    first = next(value.items(), None)
    return first is None or (accepts(param.params[0], first[0]) and accepts(param.params[1], first[1]))
