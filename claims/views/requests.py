"""GPU requests: create one, list mine, look at one until it is settled, take one back."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from claims import selectors
from claims.manifests import OBJECT_FILES, File, Files
from claims.messages import say
from claims.models import GpuRequest
from claims.refusals import Code, Refusal, RefusalError, refuse
from claims.selectors import RequestView
from claims.services.preview import preview
from claims.services.submit import Submission, submit
from claims.services.withdraw import why_not, withdraw
from claims.views import door, formnumber, formpage, live, progress
from claims.views.files import ShownFile, download, shown
from claims.views.form import FORBIDDEN, NOT_OF_THE_WISH, OK, SEE_OTHER, guest
from claims.views.waiting import waiting
from portal.cluster import person_of
from portal.http import SignedInRequest, nothing_new, page_or_part, signed_in
from portal.selectors import namespaces_of

_NEW_NUMBER = frozenset({Code.FORM_KEY, Code.FORM_USED})


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def requests(request: SignedInRequest) -> HttpResponse:
    """My requests; the form's POST creates one."""
    if not namespaces_of(request.user):
        return guest(request, FORBIDDEN if request.method == "POST" else OK)
    if request.method == "POST":
        return _create(request)
    listed = selectors.my_requests(request.user, request.GET.get("page"))
    version = live.version_of(view.row for view in listed.rows)
    if live.knows(request, version):
        return nothing_new()
    context = {"rows": listed.rows, "pager": listed.pager, "query": "", "shown_version": version}
    return page_or_part(request, "claims/requests.html", "claims/_requests.html", context)


@require_safe
@signed_in
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One request: what has happened to it and what comes next."""
    view = _found(request, pk)
    version = live.version_of([view.row])
    if live.knows(request, version):
        return nothing_new()
    again = preview(user=request.user, query=view.row.query, key=view.row.key)
    context = {
        "view": view,
        "shown_version": version,
        "steps": progress.steps(view),
        "waiting": waiting(view, again),
        "history": selectors.history_of(view.row),
        "commands": progress.commands(view),
        "files": _files(view, again.files),
        "file_query": urlencode({formnumber.PARAMETER: view.row.key}) + f"&{view.row.query}",
        "may_withdraw": why_not(request.user, view.row) is None,
    }
    return page_or_part(request, "claims/request_detail.html", "claims/_progress.html", context)


@require_safe
@signed_in
def created_file(request: SignedInRequest, pk: int) -> HttpResponse:
    """The file as it was sent to the cluster."""
    row = _found(request, pk).row
    return download(_sent(row), row.name)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def withdraw_request(request: SignedInRequest, pk: int) -> HttpResponse:
    """Ask once more, then delete the object as the person."""
    view = _found(request, pk)
    refusal = why_not(request.user, view.row)
    if refusal or request.method != "POST":
        return _confirm(request, view, [refusal] if refusal else [])
    try:
        withdraw(
            view.row,
            user=request.user,
            person=person_of(request.user),
            cluster=door.cluster(),
            request_id=request.META["REQUEST_ID"],
        )
    except RefusalError as refused:
        return _confirm(request, view, refused.refusals)
    messages.success(request, f"The {view.noun} {view.row.name} in {view.row.namespace} was deleted.")
    return HttpResponseRedirect(reverse("claims:requests"), status=SEE_OTHER)


def _create(request: SignedInRequest) -> HttpResponse:
    values = request.POST.copy()
    for name in NOT_OF_THE_WISH:
        values.pop(name, None)
    try:
        row = submit(_submission(request, values), cluster=door.cluster())
    except RefusalError as refused:
        return _refused(request, values, refused.refusals)
    return HttpResponseRedirect(reverse("claims:request", args=[row.pk]), status=SEE_OTHER)


def _submission(request: SignedInRequest, values: QueryDict) -> Submission:
    key = values.get(formnumber.PARAMETER, "")
    if not formnumber.is_one(key):
        raise RefusalError(refuse(Code.FORM_KEY))
    return Submission(
        user=request.user,
        person=person_of(request.user),
        query=values.urlencode(),
        key=key,
        digest=request.POST.get("digest", ""),
        request_id=request.META["REQUEST_ID"],
    )


def _refused(request: SignedInRequest, values: QueryDict, refusals: Sequence[Refusal]) -> HttpResponse:
    """The same form with what is wrong; a used or missing number is replaced."""
    if any(refusal.code in _NEW_NUMBER for refusal in refusals):
        values[formnumber.PARAMETER] = formnumber.new()
    seen = preview(user=request.user, query=values.urlencode(), key=str(values[formnumber.PARAMETER]))
    before = request.POST.get("shown", "").replace("\r\n", "\n")  # a form sends lines with both
    changed = any(refusal.code is Code.FORM_CHANGED for refusal in refusals)
    status = door.status_of(refusals)
    more = {"difference": formpage.difference(seen, before)} if changed else {}
    return formpage.show(request, seen, refusals, status=status, more=more)


def _confirm(request: SignedInRequest, view: RequestView, refusals: Sequence[Refusal]) -> HttpResponse:
    context = {"view": view, "refusals": [say(refusal) for refusal in refusals]}
    status = door.status_of(refusals) if refusals else OK
    return render(request, "claims/withdraw.html", context, status=status)


def _found(request: SignedInRequest, pk: int) -> RequestView:
    view = selectors.request_view(request.user, pk)
    if view is None:
        raise Http404
    return view


def _files(view: RequestView, again: Files | None) -> tuple[ShownFile, ...]:
    """What was sent, and the files around it while the class is still there."""
    sent = ShownFile(_sent(view.row), reverse("claims:created-file", args=[view.row.pk]))
    others = shown(file for file in again.all if file.name != sent.file.name) if again else ()
    return (sent, *others)


def _sent(row: GpuRequest) -> File:
    return File(OBJECT_FILES[row.wish.owner], row.template)
