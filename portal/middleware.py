"""One id and one log line per request: the id is in the answer, on error pages and in every line that it causes."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

import structlog
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

type _Sync = Callable[[HttpRequest], HttpResponse]
type _Async = Callable[[HttpRequest], Awaitable[HttpResponse]]

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{8,64}")
_QUIET = frozenset({"/healthz", "/readyz"})  # asked every few seconds by the kubelet
_log = structlog.get_logger(__name__)


@sync_and_async_middleware
def RequestIdMiddleware(get_response: _Sync | _Async) -> _Sync | _Async:  # noqa: N802 - named as Django names them
    """Bind the id that a proxy gave, or a new one. A text that is no id is not repeated into logs."""
    if iscoroutinefunction(get_response):
        return _asynchronous(get_response)
    return _synchronous(get_response)  # type: ignore[arg-type] # the other half of the union


def _synchronous(get_response: _Sync) -> _Sync:
    def middleware(request: HttpRequest) -> HttpResponse:
        started = _begin(request)
        return _end(request, get_response(request), started)

    return middleware


def _asynchronous(get_response: _Async) -> _Async:
    async def middleware(request: HttpRequest) -> HttpResponse:
        started = _begin(request)
        return _end(request, await get_response(request), started)

    return middleware


def _begin(request: HttpRequest) -> float:
    given = request.headers.get(HEADER, "")
    request.META["REQUEST_ID"] = given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(
        request_id=request.META["REQUEST_ID"], method=request.method, path=request.path
    )
    return time.monotonic()


def _end(request: HttpRequest, response: HttpResponse, started: float) -> HttpResponse:
    response[HEADER] = request.META["REQUEST_ID"]
    if request.path not in _QUIET:
        duration_ms = round((time.monotonic() - started) * 1000, 1)
        _log.info("request answered", status=response.status_code, duration_ms=duration_ms)
    return response
