"""Settings of the tests: the portal's own, tightened. `PORTICO_DATABASE_URL` chooses the database."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault("PORTICO_SECRET_KEY", "a-key-for-tests-only-" + "x" * 40)
os.environ.setdefault("PORTICO_LOG_FORMAT", "console")
# Playwright's synchronous door runs an event loop in the test's thread; rows are still read outside of it.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
# A file, not memory: workers and live servers are other threads and processes that read the same tables.
_FOLDER = Path(tempfile.gettempdir()) / f"portico-tests-{os.getuid()}"
_FOLDER.mkdir(mode=0o700, exist_ok=True)
os.environ.setdefault("PORTICO_DATABASE_URL", f"sqlite:///{_FOLDER / 'default.sqlite3'}")

from portal.settings import *  # noqa: E402, F403
from portal.settings import DATABASES, TEMPLATES  # noqa: E402

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(_FOLDER / f"test-{os.getpid()}.sqlite3")}

# A name that a template lacks is an error that a test sees.
TEMPLATES[0]["OPTIONS"]["string_if_invalid"] = "INVALID-%s"  # type: ignore[index]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
