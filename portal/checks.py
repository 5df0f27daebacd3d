"""System checks of our own settings: what is wrong, and what to write instead. Django runs them before a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 - Django's name
from django.core.exceptions import ImproperlyConfigured

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LEAST_KEY = 32
_LOG_FORMATS = frozenset({"json", "console"})
_LOG_LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR"})


@register
def check_secret_key(**_: Any) -> list[CheckMessage]:
    """Sessions are only as safe as the key."""
    try:
        key = settings.SECRET_KEY
    except ImproperlyConfigured:
        key = ""
    if len(key) >= _LEAST_KEY:
        return []
    return [
        Error(
            f"PORTICO_SECRET_KEY has {len(key)} characters, {_LEAST_KEY} are the least.",
            hint="Set it, or PORTICO_SECRET_KEY_FILE, to the output of: "
            "python -c 'import secrets; print(secrets.token_urlsafe(48))'",
            id="portal.E001",
        )
    ]


@register
def check_prefix(**_: Any) -> list[CheckMessage]:
    """A person must never be able to act as an identity of the cluster's own."""
    prefix = settings.IMPERSONATION_PREFIX
    if prefix.endswith(":") and not prefix.startswith("system:") and len(prefix) > 1:
        return []
    return [
        Error(
            f"PORTICO_IMPERSONATION_PREFIX is {prefix!r}, which does not set people apart from the cluster's users.",
            hint="Write a word with a colon at its end that is not system:, such as portico: or oidc:.",
            id="portal.E002",
        )
    ]


@register
def check_kubeconfig(**_: Any) -> list[CheckMessage]:
    """A path that is not there is a typing error more often than a file to come."""
    if not settings.KUBECONFIG or Path(settings.KUBECONFIG).is_file():
        return []
    return [
        Error(
            f"PORTICO_KUBECONFIG names {settings.KUBECONFIG}, and there is no such file.",
            hint="Name a kubeconfig file, or leave it empty inside a cluster to use the pod's service account.",
            id="portal.E003",
        )
    ]


@register
def check_logs(**_: Any) -> list[CheckMessage]:
    """Log settings are words out of a short list."""
    found: list[CheckMessage] = []
    for name, value, words in (
        ("PORTICO_LOG_FORMAT", settings.LOG_FORMAT, _LOG_FORMATS),
        ("PORTICO_LOG_LEVEL", settings.LOG_LEVEL, _LOG_LEVELS),
    ):
        if value not in words:
            hint = f"Write one of {', '.join(sorted(words))}."
            found.append(Error(f"{name} is {value!r}.", hint=hint, id="portal.E004"))
    return found


@register
def check_hosts(**_: Any) -> list[CheckMessage]:
    """Any host name lets others make links that look like ours."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "List the names that people open the portal by, such as portal.example.org."
    return [Warning("PORTICO_ALLOWED_HOSTS allows every name.", hint=hint, id="portal.W001")]


@register
def check_silence(**_: Any) -> list[CheckMessage]:
    """A watch that brings no news is silent for its whole length; that must not look like an outage."""
    if settings.SILENT_SECONDS > settings.WATCH_SECONDS:
        return []
    return [
        Error(
            f"PORTICO_SILENT_SECONDS is {settings.SILENT_SECONDS} and PORTICO_WATCH_SECONDS {settings.WATCH_SECONDS}: "
            "a quiet cluster would look like a silent one.",
            hint="Make PORTICO_SILENT_SECONDS the larger one, at least twice.",
            id="portal.E005",
        )
    ]


@register
def check_demo(**_: Any) -> list[CheckMessage]:
    """A demo lets anyone in who reaches it, so nobody may reach it from elsewhere, and no cluster stands behind it."""
    if not settings.DEMO:
        return []
    found: list[CheckMessage] = []
    hint = "Leave PORTICO_DEMO empty: `make demo` alone sets it. A demo without a login is for one's own machine."
    if not set(settings.ALLOWED_HOSTS) <= LOOPBACK:
        names = ", ".join(sorted(set(settings.ALLOWED_HOSTS) - LOOPBACK))
        found.append(Error(f"PORTICO_DEMO is set, and others open the portal as {names}.", hint=hint, id="portal.E006"))
    if not settings.KUBECONFIG:
        found.append(Error("PORTICO_DEMO is set inside a cluster.", hint=hint, id="portal.E007"))
    if not Path(settings.DEMO).is_file():
        found.append(
            Error(f"PORTICO_DEMO names {settings.DEMO}, and there is no such file.", hint=hint, id="portal.E008")
        )
    return found
