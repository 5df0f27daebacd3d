#!/usr/bin/env python
"""The usual door to Django's commands."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - settings must be named first

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
