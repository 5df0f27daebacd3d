"""matchAttribute and distinctAttribute, one row a rule (`matchAttributeConstraint`, `distinctAttributeConstraint`)."""

from __future__ import annotations

import pytest

from dra.constraints import Constraint, Kind, attribute_value, lookup_attribute
from dra.objects import DeviceAttribute

ONE, TWO = DeviceAttribute(int_=1), DeviceAttribute(int_=2)
YES = DeviceAttribute(bool_=True)
TEXT = DeviceAttribute(string="1")
VERSION = DeviceAttribute(version="1.0.0")
AB, BC, CD = (DeviceAttribute(strings=tuple(text)) for text in ("ab", "bc", "cd"))
B = DeviceAttribute(string="b")


def holds(kind: Kind, *attributes: DeviceAttribute | None, lists: bool = False) -> bool:
    """Whether all but the last are accepted, as they must be, and then the last."""
    constraint: Constraint | None = Constraint(kind=kind, attribute="d/a", lists=lists)
    for number, attribute in enumerate(attributes):
        assert constraint is not None, f"refused already number {number - 1}"
        constraint = constraint.add(attribute)
    return constraint is not None


@pytest.mark.parametrize(
    ("attributes", "match", "distinct"),
    [
        pytest.param((None,), False, False, id="one device needs the attribute, too"),
        pytest.param((ONE,), True, True, id="one device"),
        pytest.param((ONE, ONE), True, False, id="equal"),
        pytest.param((ONE, TWO), False, True, id="different"),
        pytest.param((ONE, TEXT), False, True, id="types never match"),
        pytest.param((ONE, YES), False, True, id="true is not 1"),
        pytest.param((TEXT, VERSION), False, True, id="a version is no string"),
        pytest.param((ONE, None), False, False, id="the second lacks it"),
        pytest.param((AB,), True, True, id="a list alone is accepted with lists off"),
        pytest.param((AB, AB), False, False, id="two lists are not"),
        pytest.param((AB, B), False, True, id="a list and a value are of different types"),
    ],
)
def test_with_lists_off(attributes: tuple[DeviceAttribute | None, ...], *, match: bool, distinct: bool) -> None:
    assert holds("match", *attributes) is match
    assert holds("distinct", *attributes) is distinct


@pytest.mark.parametrize(
    ("attributes", "match", "distinct"),
    [
        pytest.param((AB, BC), True, False, id="one value in common"),
        pytest.param((AB, CD), False, True, id="none in common"),
        pytest.param((AB, B), True, False, id="a single value is a list of one"),
        pytest.param((DeviceAttribute(),), False, False, id="no value at all"),
    ],
)
def test_with_lists_on(attributes: tuple[DeviceAttribute | None, ...], *, match: bool, distinct: bool) -> None:
    assert holds("match", *attributes, lists=True) is match
    assert holds("distinct", *attributes, lists=True) is distinct


def test_all_lists_must_have_the_same_value_in_common() -> None:
    assert not holds("match", AB, BC, CD, lists=True)


def test_adding_leaves_the_older_constraint_as_it_was() -> None:
    empty = Constraint(kind="match", attribute="d/a", lists=False)

    assert empty.add(ONE) is not None
    assert holds("match", TWO)
    assert empty.devices == 0


@pytest.mark.parametrize(
    ("name", "found"),
    [("d/a", True), ("e/a", False), ("e/b", True), ("d/b", False), ("a", True)],
)
def test_an_attribute_without_domain_is_the_drivers(name: str, *, found: bool) -> None:
    assert (lookup_attribute({"a": ONE, "e/b": TWO}, "d", name) is not None) is found


def test_a_value_keeps_its_type() -> None:
    assert attribute_value(ONE, lists=False) == ("int", frozenset({1}))
    assert attribute_value(AB, lists=False) is None
    assert attribute_value(AB, lists=True) == ("string", frozenset({"a", "b"}))
