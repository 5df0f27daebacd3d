"""The Celery app, and the timer that nudges the sweeps.

Tasks are nudges: the row says what is due. So every worker may send the same sweep; a doubled one changes nothing,
and no scheduler process of its own is needed.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, bootsteps, signals
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


class SweepTimer(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """While a worker runs, send each task of `settings.SWEEPS` every `settings.SWEEP_SECONDS`."""

    requires = ("celery.worker.components:Timer",)

    def start(self, parent: Any) -> None:
        """Nudge at once, so that a fresh worker does not wait, and then again and again."""
        parent.timer.call_after(0, nudge_sweeps)
        self._entry = parent.timer.call_repeatedly(settings.SWEEP_SECONDS, nudge_sweeps)

    def stop(self, parent: Any) -> None:
        """A worker that stops warm sends no more work."""
        self._entry.cancel()


app.steps["worker"].add(SweepTimer)


def nudge_sweeps() -> None:
    """Send every sweep; one that waits longer than its period is not worth doing."""
    for name in settings.SWEEPS:
        app.send_task(name, expires=settings.SWEEP_SECONDS)


@signals.setup_logging.connect  # type: ignore[untyped-decorator] # celery has no types
def keep_our_logs(**_: Any) -> None:
    """`portal.logs` has set them up; with a receiver here Celery leaves them alone."""
