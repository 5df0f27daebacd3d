"""Django's entry for what people ask for."""

from __future__ import annotations

from django.apps import AppConfig


class ClaimsConfig(AppConfig):
    """The app `claims`."""

    name = "claims"
    verbose_name = "Claims"
