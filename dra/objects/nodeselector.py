"""Node selectors: the typed struct and a matcher that answers as the scheduler does.

Terms are alternatives, requirements within a term must all hold, an empty term matches nothing.
Follows k8s.io/component-helpers/scheduling/corev1/nodeaffinity `NewNodeSelector` and apimachinery `labels.Requirement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dra.errors import InvalidObjectError
from dra.names import is_label_key, is_label_value
from dra.objects.meta import ApiStruct

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,64}")
_INT64: Final = range(-(2**63), 2**63)
_NODE_NAME: Final = "metadata.name"


class NodeSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One condition. Operators: In, NotIn, Exists, DoesNotExist, Gt, Lt; for fields only In and NotIn of one value."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True):
    """Conditions on labels and fields of a node, all of which must hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True, kw_only=True):
    """Alternatives: one term that holds is enough."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


def matches(selector: NodeSelector, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether the node is selected; InvalidObjectError where any requirement is malformed, as `NewNodeSelector`."""
    for pointer, requirement, rule in selector_faults(selector):
        raise InvalidObjectError(f"node selector, at {pointer}: {requirement.operator} {requirement.key!r} {rule}")
    return any(_term_matches(term, node_name, labels) for term in selector.node_selector_terms)


def selector_faults(selector: NodeSelector) -> Iterator[tuple[str, NodeSelectorRequirement, str]]:
    """Each malformed requirement: JSON pointer from the selector, the requirement, the rule it breaks."""
    for index, term in enumerate(selector.node_selector_terms):
        at = f"/nodeSelectorTerms/{index}"
        for place, entry in _numbered(f"{at}/matchExpressions", term.match_expressions):
            yield from ((place, entry, rule) for rule in _label_faults(entry))
        for place, entry in _numbered(f"{at}/matchFields", term.match_fields):
            yield from ((place, entry, rule) for rule in _field_faults(entry))


def _numbered(
    at: str, requirements: tuple[NodeSelectorRequirement, ...]
) -> Iterable[tuple[str, NodeSelectorRequirement]]:
    return ((f"{at}/{number}", requirement) for number, requirement in enumerate(requirements))


def _label_faults(requirement: NodeSelectorRequirement) -> Iterator[str]:
    values = requirement.values
    if not is_label_key(requirement.key):
        yield "has a key that is no label key"
    if not all(map(is_label_value, values)):
        yield f"has a value that is no label value among {list(values)}"
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                yield "needs at least one value"
        case "Exists" | "DoesNotExist":
            if values:
                yield f"takes no values, got {list(values)}"
        case "Gt" | "Lt":
            if len(values) != 1 or _int64(values[0]) is None:
                yield f"needs exactly one integer, got {list(values)}"
        case _:
            yield "has an operator that is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt"


def _field_faults(requirement: NodeSelectorRequirement) -> Iterator[str]:
    if requirement.operator not in {"In", "NotIn"}:
        yield "has an operator that is not one of In, NotIn, the only ones for fields"
    elif len(requirement.values) != 1:
        yield f"needs exactly one value, got {list(requirement.values)}"


def _term_matches(term: NodeSelectorTerm, node_name: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    if not all(_label_matches(requirement, labels) for requirement in term.match_expressions):
        return False
    return all(_field_matches(requirement, node_name) for requirement in term.match_fields)


def _field_matches(requirement: NodeSelectorRequirement, node_name: str) -> bool:
    """A field other than the name reads as empty, as `fields.Set.Get` gives it."""
    seen = node_name if requirement.key == _NODE_NAME else ""
    return (seen == requirement.values[0]) is (requirement.operator == "In")


def _label_matches(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    seen = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return seen in requirement.values
        case "NotIn":
            return seen not in requirement.values
        case "Exists":
            return seen is not None
        case "DoesNotExist":
            return seen is None
        case _:
            return seen is not None and _compares(requirement, seen)


def _compares(requirement: NodeSelectorRequirement, seen: str) -> bool:
    value, limit = _int64(seen), _int64(requirement.values[0])
    if value is None or limit is None:
        return False
    return value > limit if requirement.operator == "Gt" else value < limit


def _int64(text: str) -> int | None:
    """What `strconv.ParseInt(text, 10, 64)` reads, or None."""
    value = int(text) if _INTEGER.fullmatch(text) else None
    return value if value is not None and value in _INT64 else None
