"""Addresses of the request form, of GPU requests and of claims."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

app_name = "claims"

urlpatterns: list[URLPattern | URLResolver] = []
