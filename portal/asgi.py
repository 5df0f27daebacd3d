"""The ASGI door: `uvicorn portal.asgi:application`. Serves our few static files beside the pages."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
_pages = get_asgi_application()

from django.conf import settings  # noqa: E402 - settings are read after Django is set up
from servestatic import ServeStaticASGI  # noqa: E402


def _no_guessing(headers: Any, _path: str, _url: str) -> None:
    """A browser takes a static file for what it is called."""
    headers["X-Content-Type-Options"] = "nosniff"


application = ServeStaticASGI(
    _pages,
    root=settings.BASE_DIR / "static",
    prefix=settings.STATIC_URL,
    max_age=300,
    autorefresh=settings.DEBUG,
    add_headers_function=_no_guessing,
)
