"""Addresses of the device pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

app_name = "gpuinventory"

urlpatterns: list[URLPattern | URLResolver] = []
