"""Logs of the node side: one JSON object a line on stdout, which every log collector reads (the doctor's on stderr).

The only place that configures structlog. Who logs binds its keys at its door (`op_id` for a call of the kubelet).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: str, *, component: str, to: TextIO | None = None) -> None:
    """Log from that level (a key of LEVELS) on, every line with the component's name and an RFC 3339 time in UTC.

    `to` is stdout where nothing is said. Warnings of libraries, by Python's own logging, become lines like any other.
    """

    def named(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        line.setdefault("component", component)
        return line

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            named,  # no context: threads begin without one
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(to or sys.stdout),
    )
    logging.basicConfig(handlers=[_Forwarded()], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)


class _Forwarded(logging.Handler):
    """What a library logs by Python's own logging."""

    def emit(self, record: logging.LogRecord) -> None:
        """As a line of ours, with the library's name."""
        structlog.get_logger().log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info or None
        )
