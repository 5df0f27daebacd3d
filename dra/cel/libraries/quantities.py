"""Functions of quantities. Arithmetic and order are those of `dra.quantity`.

Follows k8s.io/apiserver/pkg/cel/library/quantity.go and cel/quantity.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Final

from dra.cel import types
from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.types import BOOL, INT, QUANTITY, STRING, Type
from dra.cel.values import INT_MAX, INT_MIN
from dra.errors import InvalidQuantityError
from dra.quantity import Quantity, parse_quantity

_NANO: Final = 10**9


class ComputedQuantity(Quantity):
    """What `add` and `sub` return. To the right of `==` cel-go has no overload for it (a pointer there, no value)."""

    __slots__ = ()
    CEL_TYPE: ClassVar[Type] = QUANTITY


@lru_cache(maxsize=4096)
def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except InvalidQuantityError as fault:
        raise CelRuntimeError(str(fault)) from fault


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except InvalidQuantityError:
        return False
    return True


def _sign(quantity: Quantity) -> int:
    return (quantity.nano > 0) - (quantity.nano < 0)


def _is_greater_than(left: Quantity, right: Quantity) -> bool:
    return left.nano > right.nano


def _is_less_than(left: Quantity, right: Quantity) -> bool:
    return left.nano < right.nano


def _compare_to(left: Quantity, right: Quantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


def _as_approximate_float(quantity: Quantity) -> float:
    try:
        return quantity.nano / _NANO
    except OverflowError:
        return float("inf") if quantity.nano > 0 else float("-inf")


def _is_integer(quantity: Quantity) -> bool:
    units, rest = divmod(quantity.nano, _NANO)
    return rest == 0 and INT_MIN <= units <= INT_MAX


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise CelRuntimeError("cannot convert value to integer")
    return quantity.nano // _NANO


def _add(left: Quantity, right: Quantity) -> Quantity:
    return ComputedQuantity(left.nano + right.nano)


def _add_int(left: Quantity, units: int) -> Quantity:
    return ComputedQuantity(left.nano + units * _NANO)


def _sub(left: Quantity, right: Quantity) -> Quantity:
    return ComputedQuantity(left.nano - right.nano)


def _sub_int(left: Quantity, units: int) -> Quantity:
    return ComputedQuantity(left.nano - units * _NANO)


FUNCTIONS: Final[Library] = {
    "quantity": (Overload("string_to_quantity", (STRING,), QUANTITY, _quantity),),
    "isQuantity": (Overload("is_quantity_string", (STRING,), BOOL, _is_quantity),),
    "sign": (Overload("quantity_sign", (QUANTITY,), INT, _sign),),
    "isGreaterThan": (Overload("quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, _is_greater_than, member=True),),
    "isLessThan": (Overload("quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, _is_less_than, member=True),),
    "compareTo": (Overload("quantity_compare_to", (QUANTITY, QUANTITY), INT, _compare_to, member=True),),
    "asApproximateFloat": (
        Overload("quantity_get_float", (QUANTITY,), types.DOUBLE, _as_approximate_float, member=True),
    ),
    "asInteger": (Overload("quantity_get_int", (QUANTITY,), INT, _as_integer, member=True),),
    "isInteger": (Overload("quantity_is_integer", (QUANTITY,), BOOL, _is_integer, member=True),),
    "add": (
        Overload("quantity_add", (QUANTITY, QUANTITY), QUANTITY, _add, member=True),
        Overload("quantity_add_int", (QUANTITY, INT), QUANTITY, _add_int, member=True),
    ),
    "sub": (
        Overload("quantity_sub", (QUANTITY, QUANTITY), QUANTITY, _sub, member=True),
        Overload("quantity_sub_int", (QUANTITY, INT), QUANTITY, _sub_int, member=True),
    ),
}
