"""Explanations of selectors: which condition failed, with what value."""

from __future__ import annotations

import pytest

from dra.cel import CelDevice, Condition, Seen, compile_expression
from dra.objects import DeviceAttribute, DeviceCapacity
from tests.dra.cel.asking import BARE, FULL

MODEL = 'device.attributes["gpu.example.com"].model'
MEMORY = 'device.capacity["gpu.example.com"].memory'


def test_conditions_stand_as_written_with_what_they_saw() -> None:
    text = f'{MODEL} == "A100" && ({MEMORY}.compareTo(quantity("40Gi")) >= 0 || device.allowMultipleAllocations)'
    explanation = compile_expression(text).explain(FULL)
    assert explanation.result is False
    assert explanation.error is None
    assert explanation.conditions == (
        Condition(f'{MODEL} == "A100"', result=False, error=None, seen=(Seen(MODEL, '"H100"'),)),
        Condition(
            f'({MEMORY}.compareTo(quantity("40Gi")) >= 0 || device.allowMultipleAllocations)',
            result=True,
            error=None,
            seen=(Seen(MEMORY, "80Gi"), Seen("device.allowMultipleAllocations", "false")),
        ),
    )
    assert explanation.failing == explanation.conditions[:1]


def test_conditions_below_bind_see_through_the_name() -> None:
    text = 'cel.bind(a, device.attributes["gpu.example.com"], a.model == "H100" && a.index > 3)'
    explanation = compile_expression(text).explain(FULL)
    assert explanation.failing == (Condition("a.index > 3", result=False, error=None, seen=(Seen("a.index", "1"),)),)


def test_a_missing_attribute_is_absent_and_an_error() -> None:
    explanation = compile_expression(f'true && {MODEL} == "H100"').explain(BARE)
    assert explanation.error == "no such key: model"
    assert explanation.result is None
    (failing,) = explanation.failing
    assert failing.error == "no such key: model"
    assert failing.seen == (Seen(MODEL, "absent"),)


def test_a_value_below_the_devices_own_driver_is_seen() -> None:
    text = 'device.capacity[device.driver].memory.compareTo(quantity("100Gi")) >= 0'
    (condition,) = compile_expression(text).explain(FULL).conditions
    assert condition.seen == (Seen("device.capacity[device.driver].memory", "80Gi"),)


def test_terms_of_a_chain_keep_their_order() -> None:
    text = " && ".join(f"{number} > 0" for number in range(9))
    assert [each.text for each in compile_expression(text).explain(BARE).conditions] == text.split(" && ")


def test_a_whole_selector_that_is_no_bool_says_so() -> None:
    (condition,) = compile_expression(MODEL).explain(FULL).conditions
    assert condition == Condition(MODEL, result=None, error="is no bool but string", seen=(Seen(MODEL, '"H100"'),))


def test_an_evaluation_that_upstream_breaks_off_is_an_error() -> None:
    explanation = compile_expression("true && (dyn(1).distinct() == [1] || true)").explain(BARE)
    assert explanation.result is None
    assert [each.result for each in explanation.conditions] == [True, None]


def test_values_in_loops_are_seen_and_loop_variables_are_not() -> None:
    text = f'["H", "A"].exists(m, {MODEL}.startsWith(m))'
    (condition,) = compile_expression(text).explain(FULL).conditions
    assert condition.seen == (Seen(MODEL, '"H100"'),)


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (DeviceAttribute(bool_=True), "true"),
        (DeviceAttribute(int_=-3), "-3"),
        (DeviceAttribute(string='a"b'), r'"a\"b"'),
        (DeviceAttribute(version="1.2.3-rc.1"), "1.2.3-rc.1"),
        (DeviceAttribute(strings=("a", "b")), '["a", "b"]'),
        (DeviceAttribute(ints=(1, 2)), "[1, 2]"),
        (DeviceAttribute(bools=(True,)), "[true]"),
        (DeviceAttribute(versions=("1.0.0",)), "[1.0.0]"),
    ],
)
def test_values_read_as_an_expression_would_write_them(attribute: DeviceAttribute, text: str) -> None:
    device = CelDevice.of("gpu.example.com", {"model": attribute}, {})
    (condition,) = compile_expression(f"{MODEL} == {MODEL}").explain(device).conditions
    assert condition.seen == (Seen(MODEL, text),)


def test_an_optional_value_is_seen_as_its_value_or_absent() -> None:
    program = compile_expression('device.attributes["gpu.example.com"].?model.orValue("x") == "x"')
    chain = 'device.attributes["gpu.example.com"].?model'
    assert program.explain(FULL).conditions[0].seen == (Seen(chain, '"H100"'),)
    assert program.explain(BARE).conditions[0].seen == (Seen(chain, "absent"),)


def test_a_quantity_is_seen_in_its_canonical_form() -> None:
    device = CelDevice.of("gpu.example.com", {}, {"memory": DeviceCapacity(value="81920Mi")})
    (condition,) = compile_expression(f'{MEMORY} == quantity("1")').explain(device).conditions
    assert condition.seen == (Seen(MEMORY, "80Gi"),)
