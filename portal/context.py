"""What the frame of every page needs: navigation, the namespace switcher, the version, a demo's own.

Lazy, so that a part or an error page pays for nothing that it does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from portal import http, selectors
from portal.demo.frame import frame
from portal.models import User


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the rail."""

    label: str
    path: str
    icon: str
    here: bool


_ITEMS = (
    ("Home", "/", "home"),
    ("Request a GPU", "/request/", "request"),
    ("My requests", "/requests/", "requests"),
    ("Claims", "/claims/", "claims"),
    ("GPU classes", "/gpu-classes/", "classes"),
    ("Capacity", "/capacity/", "capacity"),
    ("Devices", "/devices/", "devices"),
)


_OPERATE = (("People", "/people/", "people"),)


def chrome(request: HttpRequest) -> dict[str, Any]:
    """Context of `base.html`."""
    return {
        "nav": SimpleLazyObject(lambda: _nav(request)),
        "demo": SimpleLazyObject(lambda: frame(request)) if settings.DEMO else None,
        "spaces": SimpleLazyObject(lambda: _spaces(request)),
        "request_id": request.META.get("REQUEST_ID", ""),
        "version": settings.VERSION,
    }


def _nav(request: HttpRequest) -> list[NavItem]:
    """The entries; a group that this person can't use is absent as a whole."""
    operates = isinstance(request.user, User) and request.user.is_operator
    items = (*_ITEMS, *(_OPERATE if operates else ()))
    return [NavItem(label, path, icon, _here(request.path, path)) for label, path, icon in items]


def _here(current: str, path: str) -> bool:
    return current == path if path == "/" else current.startswith(path)


def _spaces(request: HttpRequest) -> list[tuple[str, bool]]:
    """The person's namespaces, each with whether it is the chosen one."""
    if not isinstance(request.user, User):
        return []
    signed_in = cast("http.SignedInRequest", request)
    chosen = http.current_namespace(signed_in)
    return [(namespace, namespace == chosen) for namespace in selectors.namespaces_of(request.user)]
