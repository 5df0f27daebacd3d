"""Start-up of the ground floor: one Celery app for the process, logs, and the checks of our settings."""

from __future__ import annotations

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """The app `portal`."""

    name = "portal"
    verbose_name = "Portal"

    def ready(self) -> None:
        """Importing is registering: the Celery app becomes the process's own, the checks join Django's."""
        from django.conf import settings  # noqa: PLC0415

        from portal import logs  # noqa: PLC0415

        logs.configure(settings.LOG_FORMAT, settings.LOG_LEVEL)
        import portal.celery  # noqa: PLC0415
        import portal.checks  # noqa: F401, PLC0415
