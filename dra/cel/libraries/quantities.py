"""Functions of quantities. Reading, arithmetic and order are those of `dra.quantity`.

Follows k8s.io/apiserver/pkg/cel/library/quantity.go.
"""

from __future__ import annotations

from typing import Final

from dra.cel import types
from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.types import BOOL, INT, QUANTITY, STRING
from dra.cel.values import INT_MIN, ComputedQuantity
from dra.errors import InvalidQuantityError
from dra.quantity import Format, Quantity, parse_quantity


def quantity_from_text(text: str) -> Quantity:
    """`quantity(text)`; CelRuntimeError if the text is none."""
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


def _is_integer(quantity: Quantity) -> bool:
    return quantity.as_int64() is not None


def _as_integer(quantity: Quantity) -> int:
    units = quantity.as_int64()
    if units is None:
        raise CelRuntimeError("cannot convert value to integer")
    return units


def _computed(quantity: Quantity) -> ComputedQuantity:
    return ComputedQuantity(quantity.nano, quantity.format, quantity.text, quantity.power)


def _add(left: Quantity, right: Quantity) -> ComputedQuantity:
    return _computed(left + right)


def _sub(left: Quantity, right: Quantity) -> ComputedQuantity:
    if isinstance(right, ComputedQuantity) and _keeps_its_sign(left, right.as_int64()):
        return _computed(left + right)
    return _computed(left - right)


def _add_int(left: Quantity, units: int) -> ComputedQuantity:
    return _computed(left + Quantity.of(units, Format.DECIMAL_EXPONENT))


def _sub_int(left: Quantity, units: int) -> ComputedQuantity:
    if _keeps_its_sign(left, units):
        return _add_int(left, units)
    return _computed(left - Quantity.of(units, Format.DECIMAL_EXPONENT))


def _keeps_its_sign(left: Quantity, subtracted: int | None) -> bool:
    """Whether Go adds in truth: it negates within 64 bits, where the least number is its own negative."""
    whole = left.as_int64()
    return subtracted == INT_MIN and whole is not None and whole >= 0


FUNCTIONS: Final[Library] = {
    "quantity": (Overload("string_to_quantity", (STRING,), QUANTITY, quantity_from_text),),
    "isQuantity": (Overload("is_quantity_string", (STRING,), BOOL, _is_quantity),),
    "sign": (Overload("quantity_sign", (QUANTITY,), INT, _sign),),
    "isGreaterThan": (Overload("quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, _is_greater_than, member=True),),
    "isLessThan": (Overload("quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, _is_less_than, member=True),),
    "compareTo": (Overload("quantity_compare_to", (QUANTITY, QUANTITY), INT, _compare_to, member=True),),
    "asApproximateFloat": (
        Overload("quantity_get_float", (QUANTITY,), types.DOUBLE, Quantity.approximate_float, member=True),
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
