"""Home, capacity, freshness, the device table and the device page. Each is one view for the page and its live part."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from dra.names import DeviceID
from gpuinventory import selectors
from gpuinventory.claimstate import ClaimState
from gpuinventory.selectors import DeviceFilter
from gpuinventory.selectors.devices import BADGES
from portal.http import SignedInRequest, nothing_new, page_or_part, signed_in, wants_part
from portal.selectors import namespaces_of

_WAITING = frozenset({ClaimState.WAITING_FOR_POD, ClaimState.WAITING_FOR_DEVICES, ClaimState.WAITING_FOR_READY})


@require_safe
@signed_in
def home(request: SignedInRequest) -> HttpResponse:
    """What is mine now, what waits, and what is free."""
    if is_unchanged(request):
        return nothing_new()
    namespaces = namespaces_of(request.user)
    claims = selectors.resource_claims(namespaces)
    context = {
        "namespaces": namespaces,
        "first": bool(namespaces) and not claims,
        "waiting": [claim for claim in claims if claim.state in _WAITING],
        "mine": [claim for claim in claims if claim.state not in _WAITING],
        "products": selectors.totals_by_product(),
        "profiles": selectors.totals_by_profile(),
        "revision": selectors.revision(),
    }
    return page_or_part(request, "gpuinventory/home.html", "gpuinventory/_home.html", context)


@require_safe
@signed_in
def device_list(request: SignedInRequest) -> HttpResponse:
    """Operators see every device; others those that their own claims hold, and numbers for the rest."""
    if is_unchanged(request):
        return nothing_new()
    namespaces = None if request.user.is_operator else namespaces_of(request.user)
    wanted = _filter(request)
    choices = selectors.filter_choices() if namespaces is None else ((), ())
    devices = selectors.list_devices(wanted, namespaces=namespaces, page=_page(request))
    context = {
        "devices": devices.rows,
        "pager": devices.pager,
        "wanted": wanted,
        "filtered": wanted != DeviceFilter(),
        "states": BADGES.items(),
        "choices": choices,
        "products": selectors.totals_by_product(),
        "profiles": selectors.totals_by_profile(),
        "unsettled": selectors.unsettled_pools() if namespaces is None else (),
        "query": _query(request, without=("page", "since")),
        "revision": selectors.revision(),
    }
    return page_or_part(request, "gpuinventory/device_list.html", "gpuinventory/_device_list.html", context)


@require_safe
@signed_in
def device(request: SignedInRequest, driver: str, pool: str, name: str) -> HttpResponse:
    """One device; for people who are no operators only if a claim of theirs holds it."""
    if is_unchanged(request):
        return nothing_new()
    namespaces = None if request.user.is_operator else namespaces_of(request.user)
    detail = selectors.device_detail(DeviceID(driver, pool, name), namespaces=namespaces)
    if detail is None:
        raise Http404(f"No device {name} of pool {pool} that you may see is published by {driver}.")
    context = {"detail": detail, "device": detail.view, "revision": selectors.revision()}
    return page_or_part(request, "gpuinventory/device.html", "gpuinventory/_device.html", context)


@require_safe
@signed_in
def capacity(request: SignedInRequest) -> HttpResponse:
    """What can be had now, class by class: numbers for everyone who is signed in."""
    if is_unchanged(request):
        return nothing_new()
    found = selectors.capacity()
    context = {"capacity": found, "revision": found.revision}
    return page_or_part(request, "gpuinventory/capacity.html", "gpuinventory/_capacity.html", context)


@require_safe
@signed_in
def sync(request: SignedInRequest) -> HttpResponse:
    """How old what is shown is, kind by kind, and what the cluster can do."""
    context = {
        "kinds": selectors.kind_states(),
        "clocks": selectors.clocks(),
        "capabilities": selectors.capabilities(),
    }
    return page_or_part(request, "gpuinventory/sync.html", "gpuinventory/_sync.html", context)


@require_safe
@signed_in
def freshness(request: SignedInRequest) -> HttpResponse:
    """The badge alone, and the amber bar beside it."""
    return render(request, "gpuinventory/freshness.html")


def is_unchanged(request: HttpRequest) -> bool:
    """Whether a poll already shows the present revision (`?since=`)."""
    since = request.GET.get("since", "")
    return wants_part(request) and since == str(selectors.revision())


def _filter(request: HttpRequest) -> DeviceFilter:
    return DeviceFilter(
        state=request.GET.get("state", ""),
        product=request.GET.get("product", ""),
        node=request.GET.get("node", ""),
        text=request.GET.get("text", "").strip()[:100],
        everything=request.GET.get("show") == "all",
    )


def _page(request: HttpRequest) -> int:
    page = request.GET.get("page", "1")
    return int(page) if page.isascii() and page.isdecimal() and len(page) < 6 else 1


def _query(request: HttpRequest, *, without: tuple[str, ...]) -> str:
    """The other keys of the address, kept in every link."""
    pairs = [(key, value) for key, values in request.GET.lists() for value in values if key not in without and value]
    return urlencode(pairs)
