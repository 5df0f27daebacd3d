"""Pages of the ground floor."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse


def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return HttpResponse("ok\n", content_type="text/plain")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form is not ours or too old."""
    return HttpResponse("refused\n", status=403)
