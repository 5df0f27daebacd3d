"""Redis and PostgreSQL for tests: the real programs, on a free loopback port, in a temporary folder, stopped by pid.

`python -m tests.services postgres -- COMMAND …` runs a command with PORTICO_DATABASE_URL set to a fresh server, so the
same tests can run on either database.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_WAIT = 30.0
_PLACES = (Path("/usr/lib/postgresql"),)


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once something listens; with the end of the log if the program ended instead."""
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} does not listen on {port}:\n{log.read_text(errors='replace')[-2000:]}")


@contextlib.contextmanager
def running(arguments: list[str], port: int, folder: Path, *, user: str | None = None) -> Iterator[None]:
    """The program while it listens on that port."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=output, cwd=folder, user=user)
    try:
        wait_for_port(port, process, log)
        yield
    finally:
        process.terminate()
        process.wait(_WAIT)


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """A Redis without persistence; its address."""
    program = shutil.which("redis-server") or "redis-server"
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="portico-redis-") as folder:
        arguments = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        with running(arguments, port, Path(folder)):
            yield f"redis://127.0.0.1:{port}/0"


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """A fresh PostgreSQL with one empty database; its address in the form of PORTICO_DATABASE_URL."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="portico-pg-") as name:
        folder = Path(name)
        user = _server_user(folder)
        data = folder / "data"
        initdb = [str(_program("initdb")), "-D", str(data), "-U", "portico", "--auth=trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=folder)
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": name, "fsync": "off"}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with running([str(_program("postgres")), "-D", str(data), "-p", str(port), *options], port, folder, user=user):
            yield f"postgres://portico@127.0.0.1:{port}/postgres"


def _program(name: str) -> Path:
    """PATH first, then where Debian keeps the programs of a server."""
    found = shutil.which(name)
    if found:
        return Path(found)
    versions = sorted(path for place in _PLACES for path in place.glob(f"*/bin/{name}"))
    if not versions:
        raise RuntimeError(f"{name} was not found: install postgresql (on Debian: apt-get install postgresql)")
    return versions[-1]


def _server_user(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root: then as the user that Debian's package makes, or as nobody."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in known else "nobody"
    shutil.chown(folder, user)
    return user


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    """Address of a Redis for this run."""
    with redis_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a PostgreSQL for this run."""
    with postgres_server() as url:
        yield url


def main(arguments: list[str]) -> int:
    """Run the command after `--` beside the server."""
    if len(arguments) < 3 or arguments[0] != "postgres" or arguments[1] != "--":
        print("usage: python -m tests.services postgres -- COMMAND …", file=sys.stderr)
        return 2
    with postgres_server() as url:
        return subprocess.run(arguments[2:], check=False, env=os.environ | {"PORTICO_DATABASE_URL": url}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
