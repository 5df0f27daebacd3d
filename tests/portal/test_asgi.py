"""The web process as it is started in life: pages and static files by uvicorn, and an end within seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.services import free_port, wait_for_port

ROOT = Path(__file__).parents[2]


@contextmanager
def uvicorn(folder: Path, **variables: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port of a web process with an empty database of its own, and the process."""
    port, log = free_port(), folder / "log"
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "PORTICO_DATABASE_URL": f"sqlite:///{folder / 'db.sqlite3'}",
        "PORTICO_LOG_FORMAT": "json",
    }
    environment |= variables
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity=0"], cwd=ROOT, env=environment, check=True)
    command = [sys.executable, "-m", "uvicorn", "portal.asgi:application", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        wait_for_port(port, process, log)
        yield port, process
    finally:
        process.kill()
        process.wait()


def get(port: int, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers, by small letters."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def test_pages_static_files_health_and_the_end(tmp_path: Path) -> None:
    with uvicorn(tmp_path) as (port, process):
        assert [get(port, path)[0] for path in ("/healthz", "/readyz", "/version")] == [200, 200, 200]
        status, page = get(port, "/sign-in/")
        assert status == 200
        assert "default-src 'none'" in page["content-security-policy"]
        status, css = get(port, "/static/css/portal.css")
        assert (status, css["content-type"], css["x-content-type-options"]) == (
            200, 'text/css; charset="utf-8"', "nosniff",
        )  # fmt: skip
        assert get(port, "/static/../manage.py")[0] == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) in {0, -signal.SIGTERM}
    assert '"event": "request answered"' in (tmp_path / "log").read_text()


@pytest.mark.parametrize(("https", "secure"), [("true", True), ("false", False)])
def test_cookies_are_secure_where_people_come_by_https(tmp_path: Path, https: str, secure: bool) -> None:  # noqa: FBT001 - a column of the table
    with uvicorn(tmp_path, PORTICO_HTTPS=https, PORTICO_ALLOWED_HOSTS="portal.example.org") as (port, _):
        _, page = get(port, "/sign-in/", Host="portal.example.org", **{"X-Forwarded-Proto": "https"})
        assert page["set-cookie"].startswith("csrftoken=")
        assert ("Secure" in page["set-cookie"]) is secure
        assert (page.get("strict-transport-security") == "max-age=31536000") is secure
        assert get(port, "/sign-in/", Host="other.example.org")[0] == 400
