"""Validate: the same form again, with what the API server would say to each object. Nothing is created."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.views.decorators.http import require_POST

from claims.messages import Sentences, say
from claims.refusals import Code, Refusal, RefusalError, refuse
from claims.services.preview import preview
from claims.services.validate import Verdict, validate
from claims.views import door, formnumber, formpage
from claims.views.form import FORBIDDEN, NOT_OF_THE_WISH, OK, guest
from portal.cluster import person_of
from portal.http import SignedInRequest, signed_in
from portal.selectors import namespaces_of


@dataclass(frozen=True, slots=True)
class Said:
    """One object with the API server's answer: the class that colours it, its glyph, and words where it is no yes."""

    verdict: Verdict
    tone: str
    glyph: str
    sentences: Sentences | None


@dataclass(frozen=True, slots=True)
class Validation:
    """The panel: a headline, each object, or why the cluster did not answer."""

    headline: str
    said: tuple[Said, ...] = ()
    trouble: tuple[Sentences, ...] = ()


@require_POST
@signed_in
def validate_wish(request: SignedInRequest) -> HttpResponse:
    """The form with the verdicts; 422 where it is no wish, 503 where the cluster is silent."""
    if not namespaces_of(request.user):
        return guest(request, FORBIDDEN)
    values = request.POST.copy()
    for name in NOT_OF_THE_WISH:
        values.pop(name, None)
    key = str(values.get(formnumber.PARAMETER, ""))
    seen = preview(user=request.user, query=values.urlencode(), key=key if formnumber.is_one(key) else "")
    if seen.files is None or seen.wish is None:
        return formpage.show(request, seen, seen.refusals, status=door.WRONG_VALUE)
    if not formnumber.is_one(key):
        return formpage.show(request, seen, [refuse(Code.FORM_KEY)], status=door.WRONG_VALUE)
    try:
        verdicts = validate(seen.files.applied, seen.wish, person=person_of(request.user), cluster=door.cluster())
    except RefusalError as refused:
        more = {"validation": _trouble(refused.refusals)}
        return formpage.show(request, seen, (), status=door.status_of(refused.refusals), more=more)
    return formpage.show(request, seen, (), status=OK, more={"validation": _validation(verdicts)})


def _validation(verdicts: Sequence[Verdict]) -> Validation:
    refused = sum(each.refusal is not None and each.tried for each in verdicts)
    untried = sum(not each.tried for each in verdicts)
    if refused:
        headline = f"The API server would refuse {refused} of {len(verdicts)}."
    elif untried:
        headline = f"The API server would take {len(verdicts) - untried} of {len(verdicts)}; the rest was not tried."
    else:
        headline = "The API server would take all of it."
    return Validation(headline, tuple(_said(each) for each in verdicts))


def _trouble(refusals: Sequence[Refusal]) -> Validation:
    return Validation("It could not be validated.", trouble=tuple(say(refusal) for refusal in refusals))


def _said(verdict: Verdict) -> Said:
    if verdict.refusal is None:
        return Said(verdict, "good", "✓", None)
    tone, glyph = ("bad", "✕") if verdict.tried else ("unknown", "?")
    return Said(verdict, tone, glyph, say(verdict.refusal))
