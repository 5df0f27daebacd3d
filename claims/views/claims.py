"""The resource claims of my namespaces, with what they got."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from claims import selectors
from claims.views import live
from claims.views.form import OK, guest
from gpuinventory.claimstate import BADGES, ClaimState
from portal.http import SignedInRequest, nothing_new, page_or_part, signed_in
from portal.selectors import namespaces_of

PAGE = 50
_STATES = tuple(
    (str(state), badge.word)
    for state, badge in BADGES.items()
    if state not in (ClaimState.GONE, ClaimState.NOT_CREATED)
)


@require_safe
@signed_in
def claims(request: SignedInRequest) -> HttpResponse:
    """Every claim of my namespaces, newest first; `ns` and `state` in the address narrow the list."""
    namespaces = namespaces_of(request.user)
    if not namespaces:
        return guest(request, OK)
    version = live.version_of()
    if live.knows(request, version):
        return nothing_new()
    namespace, state = request.GET.get("ns", ""), request.GET.get("state", "")
    every = selectors.claims_of(request.user, namespace)
    chosen = [claim for claim in every if state in ("", claim.state)]
    query = request.GET.copy()
    for name in ("page", live.SINCE):
        query.pop(name, None)
    context = {
        "pager": Paginator(chosen, PAGE).get_page(request.GET.get("page")),
        "total": len(every),
        "devices": sum(len(claim.devices) for claim in chosen),
        "namespaces": namespaces,
        "namespace": namespace,
        "states": _STATES,
        "state": state,
        "query": query.urlencode(),
        "shown_version": version,
    }
    return page_or_part(request, "claims/claims.html", "claims/_claims.html", context)
