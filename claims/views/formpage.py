"""What the form's page shows for a preview and refusals: fields with their messages, files, the difference.

It decides nothing: rules and files come from the services.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from types import MappingProxyType
from typing import Any

from django.http import HttpResponse

from claims.messages import say
from claims.refusals import Code, Refusal
from claims.services.charges import quota_charges
from claims.services.fit import fit
from claims.services.preview import Preview
from claims.views.desk.advanced import advanced
from claims.views.desk.fields import Fields, fields_of
from claims.views.desk.into import into
from claims.views.desk.much import much
from claims.views.desk.otherwise import otherwise
from claims.views.desk.what import what
from claims.views.desk.where import where
from claims.views.files import shown
from claims.views.fitpanel import panel
from claims.wish import LABELS, LEAST_SHARE, MAX_COUNT, SHARE_STEP, WHOLE, Strategy, gib, noun, summary
from portal.http import SignedInRequest, page_or_part, wants_part
from portal.selectors import namespaces_of

_BOUNDS = {"count": MAX_COUNT, "least": LEAST_SHARE, "step": SHARE_STEP, "whole": WHOLE}
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_MOST_LINES = 2000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference; the sign is "+", "-" or " "."""

    sign: str
    text: str


def show(
    request: SignedInRequest,
    seen: Preview,
    refusals: Sequence[Refusal],
    *,
    status: int,
    more: Mapping[str, Any] = _NOTHING,
) -> HttpResponse:
    """The page, or its live part, saying these refusals. `more` is what only some answers show."""
    fields = fields_of(seen, refusals)
    response = page_or_part(
        request,
        "claims/request.html",
        "claims/_request_desk.html",
        {
            **_page(seen, fields, refusals),
            **_of_fleet(seen, fields),
            **where(seen),
            **into(seen),
            "namespaces": namespaces_of(request.user),
            **more,
        },
        status=status,
    )
    if request.method == "GET" and wants_part(request):
        response["HX-Replace-Url"] = f"{request.path}?{seen.reading.query}"
    return response


def _page(seen: Preview, fields: Fields, refusals: Sequence[Refusal]) -> dict[str, Any]:
    lacking = [refusal.field for refusal in seen.refusals if refusal.code is Code.FIELD_MISSING]
    return {
        "seen": seen,
        "fields": fields,
        "errors": [(each.id, each.label, each.error) for each in fields.values() if each.error],
        "refusals": [say(refusal) for refusal in refusals if not refusal.field],
        "lacking": [LABELS[key.rpartition(".")[2]] for key in lacking],
        "files": shown(seen.files.all) if seen.files else (),
        "summary": summary(seen.wish) if seen.wish else "",
        "noun": noun(seen.wish) if seen.wish else "",
        "largest": _largest(seen),
        "too_large": _too_large(seen),
        "bounds": _BOUNDS,
        "strategies": () if seen.chosen and not seen.chosen.facts.configurable else tuple(Strategy),
    }


def _of_fleet(seen: Preview, fields: Fields) -> dict[str, Any]:
    """What the fleet and the quotas say about the wish, and the room of each class."""
    fleet = seen.fleet
    answer = fit(seen, fleet)
    return {
        "fit": panel(answer, seen.wish, seen.reading.values),
        **otherwise(seen, fields, fleet, answer),
        **advanced(seen, fields, fleet),
        "charges": quota_charges(seen, fleet),
        **what(seen, fleet),
        **much(seen, fleet),
    }


def _largest(seen: Preview) -> str:
    """The most memory that a device of the chosen class can have, "" where none was seen."""
    memory = seen.chosen.facts.largest_memory if seen.chosen else None
    return gib(memory.value) if memory else ""


def _too_large(seen: Preview) -> bool:
    """Whether no device seen so far has the memory that is asked of whole ones: allowed, but pods will wait."""
    memory = seen.chosen.facts.largest_memory if seen.chosen else None
    return bool(seen.wish and seen.wish.memory and memory and memory < seen.wish.memory)


def difference(seen: Preview, before: str) -> tuple[Line, ...]:
    """What changed in the file since `before`, with everything around it. Nothing is believed of its length."""
    if not before or seen.files is None:
        return ()
    lines, now = before.splitlines()[:_MOST_LINES], seen.files.template.text.splitlines()
    told = list(unified_diff(lines, now, lineterm="", n=_MOST_LINES))[3:]  # without the header and the range
    return tuple(Line(line[0], line[1:]) for line in told)
