"""The request form, a pure function of its address, and the files of the wish in an address.

GET only: nothing is written here. Creating is a POST to `claims.views.requests`.
"""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from claims.manifests import File
from claims.messages import say
from claims.refusals import Code, refuse
from claims.services.preview import preview
from claims.views import formnumber, formpage
from claims.views.door import WRONG_VALUE
from portal.http import SignedInRequest, current_namespace, signed_in
from portal.selectors import namespaces_of

OK = 200
FORBIDDEN = 403


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


@require_safe
@signed_in
def file(request: SignedInRequest, slot: str) -> HttpResponse:
    """One file of the wish in the address, byte for byte as previewed; 422 in plain words where it is none."""
    key = request.GET.get(formnumber.PARAMETER, "")
    if not formnumber.is_one(key):
        return _sentences(str(say(refuse(Code.FORM_KEY))))
    seen = preview(user=request.user, query=request.GET.urlencode(), key=key)
    if seen.files is None or seen.wish is None:
        return _sentences(*(str(say(refusal)) for refusal in seen.refusals))
    files = {"template": seen.files.template, "pod": seen.files.pod, "quota": seen.files.quota}
    return download(files[slot], seen.wish.name)


def download(file: File, name: str) -> HttpResponse:
    """The file's bytes, to be saved under the request's name."""
    response = HttpResponse(file.content, content_type="application/yaml")
    response["Content-Disposition"] = f'attachment; filename="{name}-{file.name}"'
    return response


def guest(request: SignedInRequest, status: int) -> HttpResponse:
    """How a person without a team gets access."""
    sentences = say(refuse(Code.GUEST, username=request.user.username))
    return render(request, "claims/guest.html", {"sentences": sentences}, status=status)


def _numbered(request: SignedInRequest) -> HttpResponse:
    """The same address with a number for this form, in the person's current namespace if the address names none."""
    query = request.GET.copy()
    query[formnumber.PARAMETER] = formnumber.new()
    query.setdefault("ns", current_namespace(request))
    return HttpResponseRedirect(f"{reverse('claims:form')}?{query.urlencode()}")


def _sentences(*lines: str) -> HttpResponse:
    return HttpResponse("".join(f"{line}\n" for line in lines), status=WRONG_VALUE, content_type="text/plain")
