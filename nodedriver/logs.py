"""Logs of the node side: one JSON object a line on stdout, which every log collector reads (the doctor's on stderr).

The only place that configures structlog. Who logs binds its keys at its door (`op_id` for a call of the kubelet).
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: str, *, component: str, to: TextIO | None = None) -> None:
    """Log from that level (a key of LEVELS) on, every line with the component's name and an RFC 3339 time in UTC.

    `to` is stdout where nothing is said.
    """
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(to or sys.stdout),
    )
    structlog.contextvars.bind_contextvars(component=component)
