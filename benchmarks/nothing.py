"""The portal's address map with one more view, which answers a signed-in person with nothing: the floor of any page."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path

from portal.http import SignedInRequest, signed_in
from portal.urls import handler403, handler404, handler500
from portal.urls import urlpatterns as pages

__all__ = ["handler403", "handler404", "handler500", "urlpatterns"]


@signed_in
def nothing(_request: SignedInRequest) -> HttpResponse:
    """An empty answer."""
    return HttpResponse()


urlpatterns: list[URLPattern | URLResolver] = [path("nothing/", nothing), *pages]
