"""What a view may rely on: who asks, which namespace, and whether htmx wants the page or its part.

Decorators authorise once and hand the view a typed request. Refusals are PermissionDenied with a sentence, which the
403 page shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, cast
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from portal import selectors
from portal.models import User

NO_CONTENT = 204


class PortalRequest(HttpRequest):
    """Any request after our middleware."""

    htmx: HtmxDetails


class SignedInRequest(PortalRequest):
    """A request of a person who is signed in."""

    user: User


type View[**P] = Callable[Concatenate[SignedInRequest, P], HttpResponse]
type Guarded[**P] = Callable[Concatenate[HttpRequest, P], HttpResponse]


def signed_in[**P](view: View[P]) -> Guarded[P]:
    """Send others to sign in, and back to where they were."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return _to_sign_in(cast("PortalRequest", request))
        response = view(cast("SignedInRequest", request), *args, **kwargs)
        # Pages are a person's own: kept by no proxy, and asked for again on "back".
        patch_cache_control(response, private=True, no_cache=True)
        return response

    return guarded


def operator_required[**P](view: View[P]) -> Guarded[P]:
    """Only operators pass."""

    @wraps(view)
    def guarded(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_operator:
            raise PermissionDenied("This page is for operators. Ask one of them for what you need from it.")
        return view(request, *args, **kwargs)

    return signed_in(guarded)


def require_namespace(request: SignedInRequest, namespace: str) -> None:
    """PermissionDenied unless a team of this person works in that namespace."""
    if not selectors.may_use(request.user, namespace):
        raise PermissionDenied(
            f"No team of yours works in the namespace {namespace}. Ask its team, or an operator, to add you."
        )


def current_namespace(request: SignedInRequest) -> str:
    """The namespace chosen in the header; else the person's first; "" for a guest."""
    namespaces = selectors.namespaces_of(request.user)
    chosen = str(request.session.get("namespace", ""))
    return chosen if chosen in namespaces else next(iter(namespaces), "")


def wants_part(request: HttpRequest) -> bool:
    """Whether htmx asked, and for a part of the page."""
    htmx = cast("PortalRequest", request).htmx
    return bool(htmx) and not htmx.boosted and htmx.request_type != "full"


def page_or_part(
    request: HttpRequest, page: str, part: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """The whole page, or the part that it includes, from one context."""
    response = render(request, part if wants_part(request) else page, dict(context), status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Request-Type"])
    return response


def nothing_new() -> HttpResponse:
    """The answer to a poll that finds what the page already shows: htmx swaps nothing on 204."""
    return HttpResponse(status=NO_CONTENT)


def safe_next(request: HttpRequest, target: str) -> str:
    """The path if it leads to this portal, else the home page."""
    allowed = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if target and allowed else "/"


def _to_sign_in(request: PortalRequest) -> HttpResponse:
    here = request.get_full_path()
    if request.htmx or request.method != "GET":  # the address of a part or of a form's target shows nothing by itself
        source = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer", ""))
        here = f"{source.path or '/'}{f'?{source.query}' if source.query else ''}"
    target = f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': here})}"
    return HttpResponseClientRedirect(target) if request.htmx else HttpResponseRedirect(target)
