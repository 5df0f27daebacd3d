"""The address map. Apps above the ground floor are named by dotted path only."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from portal import views

app_name = "portal"

portal_patterns: list[URLPattern | URLResolver] = [
    path("healthz", views.healthz, name="healthz"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include((portal_patterns, "portal"))),
    path("", include("gpuinventory.urls")),
    path("", include("claims.urls")),
]
