"""Consumable capacity, one row a rule (KEP-5075; `consumable_capacity.go` of the structured allocator)."""

from __future__ import annotations

import msgspec
import pytest

from dra.capacity import CapacityError, compile_capacities, demand
from dra.objects import DeviceCapacity
from dra.quantity import parse_quantity
from tests.dra.builders import Json

RANGE: Json = {"default": "6Gi", "validRange": {"min": "4Gi", "max": "12Gi", "step": "2Gi"}}
VALUES: Json = {"default": "4", "validValues": ["2", "4", "8"]}
MILLI: Json = {"default": "500m", "validRange": {"min": "500m", "step": "250m"}}
LARGEST = "9223372036854775807"


def consumed(value: str, policy: Json | None, request: str | None, *, fractional: bool = False) -> str | None:
    capacity = msgspec.convert({"value": value, "requestPolicy": policy}, DeviceCapacity)
    requested = {} if request is None else {"memory": parse_quantity(request)}
    amounts = demand(compile_capacities({"memory": capacity}), requested, fractional=fractional)
    return None if amounts is None else str(amounts["memory"])


@pytest.mark.parametrize(
    ("value", "policy", "request_", "amount"),
    [
        pytest.param("80Gi", None, None, "80Gi", id="nothing asked and no policy: all of it"),
        pytest.param("80Gi", RANGE, None, "6Gi", id="nothing asked: the default"),
        pytest.param("80Gi", None, "3Gi", "3Gi", id="no policy: what is asked"),
        pytest.param("80Gi", RANGE, "1Gi", "4Gi", id="below the minimum: the minimum"),
        pytest.param("80Gi", RANGE, "5Gi", "6Gi", id="between steps: up to the next"),
        pytest.param("80Gi", RANGE, "8Gi", "8Gi", id="on a step: as asked"),
        pytest.param("80Gi", RANGE, "13Gi", None, id="above the maximum: not here"),
        pytest.param("8Gi", RANGE, "9Gi", None, id="rounded up past the device: not here"),
        pytest.param("10", VALUES, "3", "4", id="up to the next valid value"),
        pytest.param("10", VALUES, "9", None, id="above all valid values: not here"),
        pytest.param("10", VALUES, "0", "2", id="zero: the least valid value"),
        pytest.param("80Gi", None, "0", "0", id="zero without policy"),
        pytest.param("80Gi", None, "81Gi", None, id="more than there is"),
        pytest.param("4", MILLI, "600m", "1", id="fractions are counted in whole units"),
        pytest.param("10G", None, "1000M", "1G", id="canonical, in its own units"),
        pytest.param("20Gi", {"validRange": {"min": "3Gi", "step": "3Gi"}}, "10G", "12Gi", id="units of the step"),
    ],
)
def test_what_is_consumed(value: str, policy: Json | None, request_: str | None, amount: str | None) -> None:
    assert consumed(value, policy, request_) == amount


@pytest.mark.parametrize(("request_", "amount"), [("600m", "750m"), ("1100m", "1250m"), ("1500m", "1500m")])
def test_fractions_are_kept_with_the_gate_for_them(request_: str, amount: str) -> None:
    assert consumed("4", MILLI, request_, fractional=True) == amount


@pytest.mark.parametrize(
    ("value", "policy", "request_", "text"),
    [
        pytest.param("80Gi", None, "-1", "capacity value is negative", id="negative"),
        pytest.param(LARGEST, {"validRange": {"min": "1", "step": "2"}}, "10E", "exceeds MaxInt64", id="past 64 bits"),
        pytest.param(
            LARGEST, {"validRange": {"min": "0", "step": "4"}}, LARGEST, "passes MaxInt64", id="rounded past 64 bits"
        ),
    ],
)
def test_what_aborts_everything(value: str, policy: Json | None, request_: str, text: str) -> None:
    with pytest.raises(CapacityError, match=text) as caught:
        consumed(value, policy, request_)

    assert not caught.value.crashes


def test_a_step_of_nothing_crashes_the_scheduler() -> None:
    with pytest.raises(CapacityError, match="divide by zero") as caught:
        consumed("4", {"validRange": {"min": "1", "step": "0"}}, "2")

    assert caught.value.crashes


def test_a_capacity_that_the_device_lacks_is_not_here_even_beside_a_negative_one() -> None:
    capacities = compile_capacities({"memory": DeviceCapacity(value="1")})

    assert demand(capacities, {"cores": parse_quantity("1"), "memory": parse_quantity("-1")}, fractional=False) is None


def test_a_default_against_its_own_range_is_taken_when_nothing_is_asked() -> None:
    assert consumed("20", {"default": "5", "validRange": {"min": "1", "max": "4"}}, None) == "5"


@pytest.mark.parametrize(
    ("default", "request_", "amount"),
    [
        pytest.param("14Gi", "13Gi", None, id="rounded to the default, which keeps its spelling: not the same"),
        pytest.param("8Gi", "7Gi", "8Gi", id="a default without a spelling of its own is the same"),
    ],
)
def test_a_rounded_amount_is_the_default_only_in_the_same_form(default: str, request_: str, amount: str | None) -> None:
    policy = {"default": default, "validRange": {"min": "2Gi", "max": "7Gi", "step": "6Gi"}}

    assert consumed("20Gi", policy, request_) == amount
