"""The address map. Apps above the ground floor are named by dotted path only."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from portal import views

portal_patterns: list[URLPattern | URLResolver] = [
    path("sign-in/", views.sign_in, name="sign-in"),
    path("sign-out/", views.sign_out, name="sign-out"),
    path("namespace/", views.choose_namespace, name="choose-namespace"),
    path("people/", views.people, name="people"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("version", views.version, name="version"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include((portal_patterns, "portal"))),
    path("", include("gpuinventory.urls")),
    path("", include("claims.urls")),
]

handler400 = views.unreadable
handler403 = views.refused
handler404 = views.not_found
handler500 = views.failed
