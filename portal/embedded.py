"""Web and worker in one process, for one machine: `python -m portal.embedded --port 8000`.

The broker is then this process's own memory, so no Redis is needed. Tables must be there (`manage.py migrate`). A
cluster runs web and worker apart, as docs/dev/settings.md lists them.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import django
import uvicorn
from django.conf import settings

from portal.checks import LOOPBACK

THREADS: Final = 20  # streams take one each while they last (docs/dev/settings.md, Processes)
_END_SECONDS: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal; streams are let finish, which takes a second."""
    parser = argparse.ArgumentParser(prog="python -m portal.embedded", description="The portal in one process.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    flags = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    if settings.DEMO and flags.host not in LOOPBACK:
        parser.error(f"a demo has no login, so it is served on loopback only, not on {flags.host}")
    with _working():
        # Without the last setting open streams of pages keep the server from ending.
        uvicorn.run(
            "portal.asgi:application", host=flags.host, port=flags.port, lifespan="off", log_config=None,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
    return 0


@contextmanager
def _working() -> Iterator[None]:
    """A Celery worker beside, in threads."""
    from celery import signals  # noqa: PLC0415  # Celery reads settings, which have to be there
    from celery.worker import WorkController, state  # noqa: PLC0415

    from portal.celery import app  # noqa: PLC0415

    worker = WorkController(
        app=app, pool="threads", concurrency=THREADS,
        without_heartbeat=True, without_mingle=True, without_gossip=True,
    )  # fmt: skip
    thread = threading.Thread(target=worker.start, name="worker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signals.worker_shutting_down.send(sender="embedded", sig="", how="Warm", exitcode=0)
        state.should_stop = 0
        thread.join(_END_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
