"""A read model for benchmarks: Django on an empty SQLite file, and objects brought in as a stream brings them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from dra.kube.responses import Header
from dra.objects import decode


def use_database(path: Path, urlconf: str = "portal.urls") -> None:
    """Django on an empty file, with all tables. Call it before anything that knows models is imported."""
    os.environ["PORTICO_DATABASE_URL"] = f"sqlite:///{path}"
    os.environ.setdefault("PORTICO_SECRET_KEY", "x" * 60)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    os.environ.setdefault("PORTICO_LOG_LEVEL", "WARNING")
    import django  # noqa: PLC0415 - only once the environment is there
    from django.conf import settings  # noqa: PLC0415 - only once the environment is there
    from django.core.management import call_command  # noqa: PLC0415 - only once the environment is there

    django.setup()
    settings.ROOT_URLCONF = urlconf
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)


def another_database(path: Path) -> None:
    """Another empty file in place of the first, for the same process."""
    from django.core.management import call_command  # noqa: PLC0415 - only once Django is set up
    from django.db import connection  # noqa: PLC0415 - only once Django is set up

    from gpuinventory.selectors import held  # noqa: PLC0415 - only once Django is set up

    connection.close()
    connection.settings_dict["NAME"] = str(path)
    call_command("migrate", verbosity=0)
    held.forget()


def put(kind: str, bodies: Iterable[bytes], *, settle: bool = True) -> None:
    """These objects are in the read model; without `settle` pools are left as between two pages of a list."""
    from gpuinventory.services.ingest import Seen, ingest  # noqa: PLC0415 - only once Django is set up

    ingest(kind, [Seen(decode(body, Header).metadata, body) for body in bodies], settle=settle)


def stamped(body: bytes, version: int) -> bytes:
    """With the resourceVersion and the uid that a server gives; written into the text, which is much quicker."""
    stamp = f'"metadata":{{"uid":"{hash(body) & 0xFFFFFFFF:08x}","resourceVersion":"{version}",'
    return body.replace(b'"metadata":{', stamp.encode(), 1)
