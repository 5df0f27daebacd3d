"""Node selectors select as component-helpers `nodeaffinity` does."""

from __future__ import annotations

import pytest

from dra.errors import InvalidObjectError
from dra.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra.objects.nodeselector import matches

LABELS = {"zone": "a", "cards": "8", "empty": "", "odd": "x8"}


def requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def labelled(*requirements: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=requirements)


@pytest.mark.parametrize(
    ("key", "operator", "values", "selected"),
    [
        ("zone", "In", ("b", "a"), True), ("zone", "In", ("b",), False), ("other", "In", ("a",), False),
        ("zone", "NotIn", ("b",), True), ("zone", "NotIn", ("b", "a"), False), ("other", "NotIn", ("a",), True),
        ("zone", "Exists", (), True), ("empty", "Exists", (), True), ("other", "Exists", (), False),
        ("zone", "DoesNotExist", (), False), ("other", "DoesNotExist", (), True),
        ("empty", "In", ("",), True), ("empty", "In", ("a",), False),
        ("cards", "Gt", ("7",), True), ("cards", "Gt", ("8",), False), ("cards", "Lt", ("9",), True),
        ("cards", "Lt", ("8",), False), ("odd", "Gt", ("1",), False), ("other", "Gt", ("1",), False),
        ("cards", "Gt", ("007",), True),
    ],
)  # fmt: skip
def test_operators_on_labels(key: str, operator: str, values: tuple[str, ...], selected: bool) -> None:  # noqa: FBT001
    assert matches(selector(labelled(requirement(key, operator, *values))), "node-1", LABELS) is selected


@pytest.mark.parametrize(
    ("key", "operator", "value", "selected"),
    [
        ("metadata.name", "In", "node-1", True), ("metadata.name", "In", "node-2", False),
        ("metadata.name", "NotIn", "node-1", False), ("metadata.name", "NotIn", "node-2", True),
        ("metadata.uid", "In", "", True), ("metadata.uid", "In", "u", False), ("metadata.uid", "NotIn", "u", True),
    ],
)  # fmt: skip
def test_operators_on_fields(key: str, operator: str, value: str, selected: bool) -> None:  # noqa: FBT001  # a column
    term = NodeSelectorTerm(match_fields=(requirement(key, operator, value),))

    assert matches(selector(term), "node-1", LABELS) is selected


def test_terms_are_alternatives_and_requirements_all_hold() -> None:
    fits, misses = requirement("zone", "In", "a"), requirement("zone", "In", "b")
    both = NodeSelectorTerm(match_expressions=(fits,), match_fields=(requirement("metadata.name", "In", "node-2"),))

    assert matches(selector(labelled(misses), labelled(fits)), "node-1", LABELS)
    assert not matches(selector(labelled(fits, misses)), "node-1", LABELS)
    assert not matches(selector(both), "node-1", LABELS)
    assert matches(selector(both), "node-2", LABELS)


def test_no_term_and_an_empty_term_select_nothing() -> None:
    assert not matches(selector(), "node-1", LABELS)
    assert not matches(selector(NodeSelectorTerm()), "node-1", LABELS)


@pytest.mark.parametrize(
    ("key", "operator", "values", "rule"),
    [
        ("zone", "In", (), "needs at least one value"), ("zone", "NotIn", (), "needs at least one value"),
        ("zone", "Exists", ("a",), "takes no values"), ("zone", "DoesNotExist", ("a",), "takes no values"),
        ("zone", "Gt", (), "exactly one integer"), ("zone", "Gt", ("1", "2"), "exactly one integer"),
        ("zone", "Lt", ("a",), "exactly one integer"), ("zone", "Gt", ("9223372036854775808",), "exactly one integer"),
        ("zone", "Near", ("a",), "operator"), ("-zone", "Exists", (), "no label key"), ("a/b/c", "Exists", (), "key"),
        ("/zone", "Exists", (), "no label key"), ("zone", "In", ("a b",), "no label value"), ("", "Exists", (), "key"),
    ],
)  # fmt: skip
def test_a_malformed_requirement_is_an_error_even_where_another_term_holds(
    key: str, operator: str, values: tuple[str, ...], rule: str
) -> None:
    broken = selector(labelled(requirement("zone", "In", "a")), labelled(requirement(key, operator, *values)))

    with pytest.raises(InvalidObjectError, match=rule) as error:
        matches(broken, "node-1", LABELS)

    assert "/nodeSelectorTerms/1/matchExpressions/0" in str(error.value)


@pytest.mark.parametrize(("operator", "values"), [("Exists", ()), ("Gt", ("1",)), ("In", ("a", "b")), ("NotIn", ())])
def test_fields_take_in_and_not_in_of_one_value(operator: str, values: tuple[str, ...]) -> None:
    term = NodeSelectorTerm(match_fields=(requirement("metadata.name", operator, *values),))

    with pytest.raises(InvalidObjectError, match="/nodeSelectorTerms/0/matchFields/0"):
        matches(selector(term), "node-1", LABELS)
