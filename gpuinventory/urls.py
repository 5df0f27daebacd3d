"""Addresses of the device pages. A pool's name may have slashes, so it is matched as a path."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from gpuinventory import views

app_name = "gpuinventory"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("freshness/", views.freshness, name="freshness"),
    path("sync/", views.sync, name="sync"),
    path("capacity/", views.capacity, name="capacity"),
    path("devices/", views.device_list, name="devices"),
    path("devices/<str:driver>/<path:pool>/<str:name>/", views.device, name="device"),
]
