"""The address map of a demo: the portal's, and before it the routes that nothing but a demo has."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from portal import urls
from portal.demo import views
from portal.urls import handler403, handler404, handler500

demo_patterns: list[URLPattern | URLResolver] = [
    path("sign-in/", views.enter, name="enter"),
    path("demo/person/", views.be, name="person"),
    path("demo/time/", views.time, name="time"),
    path("demo/hint/", views.hint, name="hint"),
]

urlpatterns: list[URLPattern | URLResolver] = [path("", include((demo_patterns, "demo"))), *urls.urlpatterns]

__all__ = ["handler403", "handler404", "handler500", "urlpatterns"]
