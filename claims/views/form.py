"""The request form, a pure function of its address.

The one thing written here is a workload that somebody pastes; creating is a POST to `claims.views.requests`.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from claims.messages import say
from claims.refusals import Code, RefusalError, refuse
from claims.services.paste import paste
from claims.services.preview import preview
from claims.views import formnumber, formpage
from claims.views.desk.first import first_values
from claims.views.door import WRONG_VALUE
from portal.http import SignedInRequest, current_namespace, signed_in
from portal.selectors import namespaces_of

OK = 200
SEE_OTHER = 303
FORBIDDEN = 403
NOT_OF_THE_WISH = frozenset({"csrfmiddlewaretoken", "digest", "shown"})


@require_safe
@signed_in
def form(request: SignedInRequest) -> HttpResponse:
    """The form for the wish in the address. A wrong value is 422; one that still lacks is none yet."""
    if not namespaces_of(request.user):
        return guest(request, OK)
    key = request.GET.get(formnumber.PARAMETER, "")
    if not formnumber.is_one(key):
        return _numbered(request)
    seen = preview(user=request.user, query=request.GET.urlencode(), key=key)
    wrong = [refusal for refusal in seen.refusals if refusal.code is not Code.FIELD_MISSING]
    return formpage.show(request, seen, wrong, status=WRONG_VALUE if wrong else OK)


@require_POST
@signed_in
def paste_manifest(request: SignedInRequest) -> HttpResponse:
    """Keep the workload that was pasted, and go to the form that names it. 422 where it can't be kept."""
    if not namespaces_of(request.user):
        return guest(request, FORBIDDEN)
    values = {key: str(value) for key, value in request.POST.items() if key not in NOT_OF_THE_WISH}
    text = values.pop("text", "")
    try:
        values["manifest"] = paste(request.user, text)
    except RefusalError as refused:
        seen = preview(user=request.user, query=urlencode(values), key=values.get(formnumber.PARAMETER, ""))
        return formpage.show(request, replace(seen, manifest=text), refused.refusals, status=WRONG_VALUE)
    return HttpResponseRedirect(f"{reverse('claims:form')}?{urlencode(values)}", status=SEE_OTHER)


def guest(request: SignedInRequest, status: int) -> HttpResponse:
    """How a person without a team gets access."""
    sentences = say(refuse(Code.GUEST, username=request.user.username))
    return render(request, "claims/guest.html", {"sentences": sentences}, status=status)


def _numbered(request: SignedInRequest) -> HttpResponse:
    """The same address with a number for this form, and with what it lacks to begin with."""
    given = dict(request.GET.items())
    namespace = str(given.setdefault("ns", current_namespace(request)))
    added = {"ns": namespace}
    if namespace in namespaces_of(request.user):
        added |= first_values(namespace, {key: str(value) for key, value in given.items()})
    query = request.GET.copy()
    for key, value in (added | {formnumber.PARAMETER: formnumber.new()}).items():
        query[key] = value
    return HttpResponseRedirect(f"{reverse('claims:form')}?{query.urlencode()}")
