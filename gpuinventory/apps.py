"""Django's entry for the read model."""

from __future__ import annotations

from django.apps import AppConfig


class GpuInventoryConfig(AppConfig):
    """The app `gpuinventory`."""

    name = "gpuinventory"
    verbose_name = "GPU inventory"
