"""Why a claim fits or does not, and which changes would do: worked out once for each fleet and claim."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec

from claims.services.kept import Kept
from dra.advice.explanation import FleetExplanation, Suggestion
from dra.advice.fleetwide import explain_fleet
from dra.advice.suggest import suggest
from dra.allocation import Answer, Snapshot
from dra.fleet import FleetAnswer
from dra.objects import ResourceClaim

_MOST: Final = 64  # claims; an explanation is some 10 KB
_EXPLANATIONS: Final = Kept[FleetExplanation](_MOST)
_SUGGESTIONS: Final = Kept[tuple[Suggestion, ...]](_MOST)


def explanation(snapshot: Snapshot, claim: ResourceClaim, answer: FleetAnswer) -> FleetExplanation:
    """As `explain_fleet`, of a claim that got this answer."""
    return _EXPLANATIONS.answer(snapshot, _key(claim), lambda: explain_fleet(snapshot, [claim], _said(answer)))


def suggestions(snapshot: Snapshot, claim: ResourceClaim, answer: FleetAnswer) -> tuple[Suggestion, ...]:
    """As `suggest`, without other classes."""
    return _SUGGESTIONS.answer(snapshot, _key(claim), lambda: suggest(snapshot, [claim], answers=_said(answer)))


def _said(answer: FleetAnswer) -> dict[str, Answer]:
    return {group.nodes[0]: group.answer for group in answer.groups}


def _key(claim: ResourceClaim) -> Hashable:
    """Names of claims stand in the texts of errors."""
    return claim.metadata.namespace, claim.metadata.name, msgspec.msgpack.encode(claim.spec)
