"""One id per request, in the answer and in every log line that the request causes."""

from __future__ import annotations

import re
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


@sync_and_async_middleware
def RequestIdMiddleware(get_response: _Sync | _Async) -> _Sync | _Async:  # noqa: N802 - named as Django names them
    """Bind the id that a proxy gave, or a new one. A text that is no id is not repeated into logs."""
    if iscoroutinefunction(get_response):
        return _asynchronous(get_response)
    return _synchronous(get_response)  # type: ignore[arg-type] # the other half of the union


def _synchronous(get_response: _Sync) -> _Sync:
    def middleware(request: HttpRequest) -> HttpResponse:
        request_id = _bind(request)
        response = get_response(request)
        response[HEADER] = request_id
        return response

    return middleware


def _asynchronous(get_response: _Async) -> _Async:
    async def middleware(request: HttpRequest) -> HttpResponse:
        request_id = _bind(request)
        response = await get_response(request)
        response[HEADER] = request_id
        return response

    return middleware


def _bind(request: HttpRequest) -> str:
    given = request.headers.get(HEADER, "")
    request_id = given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex
    request.META["REQUEST_ID"] = request_id
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=request_id, method=request.method, path=request.path)
    return request_id
