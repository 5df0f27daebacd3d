"""`python -m nodedriver.mpsd`: settings to the supervisor, which runs until a signal.

A program of its own, so that it loads nothing of the driver's: it stays on the node for as long as anybody computes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import structlog

from nodedriver import logs
from nodedriver.config import ConfigError, add_flags, load_config
from nodedriver.mpsd.serve import serve
from nodedriver.ports import MpsError

_log = structlog.get_logger()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; 0 after it, 1 when it can't go on, 2 for wrong arguments or settings."""
    parser = argparse.ArgumentParser(prog="python -m nodedriver.mpsd", description="Portico's MPS supervisor.")
    add_flags(parser)
    try:
        config = load_config(parser.parse_args(arguments), os.environ)
    except ConfigError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)  # noqa: T201 - there is no log yet
        return 2
    logs.configure(config.log_level, component="mpsd")
    try:
        serve(config)
    except (ConfigError, MpsError, OSError) as error:
        _log.error("program could not go on", reason=str(error), kind=type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
