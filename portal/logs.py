"""One rich line per thing that happened, on standard output: JSON for machines, or coloured text for a terminal.

Records of Django, Celery and libraries go through the same chain.
"""

from __future__ import annotations

import logging
import sys

import structlog


def configure(log_format: str, level: str) -> None:
    """Set up structlog and the standard library's root logger; doing it again replaces the set-up."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(log_format)],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    # Our own line tells of every request; Django's repeats the refused ones.
    logging.getLogger("django.request").setLevel(logging.ERROR)


def _renderer(log_format: str) -> structlog.typing.Processor:
    return structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer()
