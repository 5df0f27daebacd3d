"""Which literals of a selector can be changed, and what the text is afterwards. One row a form."""

from __future__ import annotations

import pytest

from dra.advice.literals import comparisons

CAPACITY = 'device.capacity["gpu.example.com"].memory'
ATTRIBUTE = 'device.attributes["gpu.example.com"]'

FOUND = [
    # expression, source, domain, identifier, relation, wrapper, value, new value, the text with it
    (
        f'{CAPACITY}.compareTo(quantity("80Gi")) >= 0',
        ("capacity", "gpu.example.com", "memory", ">=", "quantity", "80Gi"),
        ("64Gi", f'{CAPACITY}.compareTo(quantity("64Gi")) >= 0'),
    ),
    (
        f"{CAPACITY}.isGreaterThan(quantity('40Gi'))",
        ("capacity", "gpu.example.com", "memory", ">", "quantity", "40Gi"),
        ("24Gi", f'{CAPACITY}.isGreaterThan(quantity("24Gi"))'),
    ),
    (
        f'has({CAPACITY}) && device.capacity[device.driver].memory.isLessThan(quantity("8Gi"))',
        ("capacity", "", "memory", "<", "quantity", "8Gi"),
        ("16Gi", f'has({CAPACITY}) && device.capacity[device.driver].memory.isLessThan(quantity("16Gi"))'),
    ),
    (
        f'{ATTRIBUTE}.profile == "7g.80gb"',
        ("attributes", "gpu.example.com", "profile", "==", "", "7g.80gb"),
        ('3g."40"gb', f'{ATTRIBUTE}.profile == "3g.\\"40\\"gb"'),
    ),
    (
        f"({ATTRIBUTE}['cores'] > 100)",
        ("attributes", "gpu.example.com", "cores", ">", "", 100),
        (64, f"({ATTRIBUTE}['cores'] > 64)"),
    ),
    (
        f"-5 <= {ATTRIBUTE}.index",
        ("attributes", "gpu.example.com", "index", ">=", "", -5),
        (-7, f"-7 <= {ATTRIBUTE}.index"),
    ),
    (
        f'{ATTRIBUTE}.driverVersion.compareTo(semver("550.0.0")) >= 0',
        ("attributes", "gpu.example.com", "driverVersion", ">=", "semver", "550.0.0"),
        ("535.1.0", f'{ATTRIBUTE}.driverVersion.compareTo(semver("535.1.0")) >= 0'),
    ),
]


@pytest.mark.parametrize(("expression", "read", "written"), FOUND, ids=lambda value: str(value)[-40:])
def test_a_conjunct_that_compares_with_a_literal_can_be_changed(
    expression: str, read: tuple[object, ...], written: tuple[str | int, str]
) -> None:
    (found,) = comparisons(expression)
    assert (found.source, found.domain, found.identifier, found.relation, found.wrapper, found.value) == read
    assert found.with_value(written[0]) == written[1]


@pytest.mark.parametrize(
    "expression",
    [
        f'{ATTRIBUTE}.model == "a" || true',
        f'!({ATTRIBUTE}.model == "a")',
        f'{ATTRIBUTE}.model != "a"',
        f"{ATTRIBUTE}.healthy == true",
        f'{ATTRIBUTE}.model == device.attributes["b"].model',
        f'{CAPACITY}.compareTo(quantity("80Gi")) >= 1',
        'device.driver == "gpu.example.com"',
        f"{CAPACITY} ==",
    ],
)
def test_what_is_no_plain_comparison_is_left_alone(expression: str) -> None:
    assert comparisons(expression) == ()


def test_each_conjunct_is_found_by_itself() -> None:
    found = comparisons(f'{ATTRIBUTE}.model == "a" && ({ATTRIBUTE}.cores >= 8 && {ATTRIBUTE}.tier < 3)')
    assert [(each.identifier, each.value) for each in found] == [("model", "a"), ("cores", 8), ("tier", 3)]
