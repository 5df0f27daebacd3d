"""Typed readers of environment variables. A wrong value is a sentence with the variable's name, never a traceback.

Only `portal.settings` uses them, so the environment is read in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


class Env:
    """Readers over one mapping of variables. An empty value counts as absent."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str, default: str = "") -> str:
        """The value as it is written."""
        return self._variables.get(name, "").strip() or default

    def secret(self, name: str, default: str = "") -> str:
        """The value, or the content of the file that `<name>_FILE` names; the file wins."""
        path = self.text(f"{name}_FILE")
        if not path:
            return self.text(name, default)
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE: can't read {path}: {error.strerror}.") from error

    def flag(self, name: str, *, default: bool) -> bool:
        """Yes or no."""
        value = self.text(name).lower()
        if value and value not in _YES | _NO:
            raise ImproperlyConfigured(f"{name}: {value!r} is neither yes nor no. Write true or false.")
        return value in _YES if value else default

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number within its bounds."""
        value = self.text(name, str(default))
        if not value.isascii() or not value.isdecimal() or not least <= int(value) <= most:
            raise ImproperlyConfigured(f"{name}: {value!r} is no whole number from {least} to {most}.")
        return int(value)

    def names(self, name: str, default: str = "") -> list[str]:
        """Words separated by commas."""
        return [word.strip() for word in self.text(name, default).split(",") if word.strip()]

    def database(self, name: str, default: str) -> dict[str, Any]:
        """Django's connection settings for `sqlite:///path` or `postgres://user:password@host:port/name?option=value`."""
        return database_of(name, self.secret(name, default))


def database_of(name: str, url: str) -> dict[str, Any]:
    """Connection settings for that address; `name` is the variable to blame."""
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            return _sqlite(unquote(parts.path.removeprefix("/")))
        case "postgres" | "postgresql":
            return {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": unquote(parts.path.lstrip("/")),
                "USER": unquote(parts.username or ""),
                "PASSWORD": unquote(parts.password or ""),
                "HOST": unquote(parts.hostname or ""),
                "PORT": str(parts.port or ""),
                "OPTIONS": dict(parse_qsl(parts.query)),
                "CONN_HEALTH_CHECKS": True,
            }
        case scheme:
            raise ImproperlyConfigured(
                f"{name}: {scheme or 'no'} database is known. Write sqlite:///… or postgres://…."
            )


def _sqlite(path: str) -> dict[str, Any]:
    """WAL lets pages read while a worker writes; IMMEDIATE makes writers queue instead of failing half-way."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
    }
