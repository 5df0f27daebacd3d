"""The portal as it runs in life: uvicorn and a Celery worker as processes of their own, against a real cluster.

Web and worker have the chart's ServiceAccounts; the broker is a real Redis on a free port, without persistence.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.cluster.chart import ServiceAccounts
from tests.cluster.cluster import Cluster
from tests.cluster.controlplane import HOST, free_ports
from tests.cluster.processes import Program
from tests.cluster.started import Started

CHECKOUT = Path(__file__).parents[2]
READY_SECONDS = 60.0
WORKER_THREADS = 20


class PortalError(Exception):
    """A management command failed; the text is what it wrote."""


class Portal(Started):
    """One portal. `url` is where people find it, `started` when it was made.

    `web_kubeconfig` may lead through a relay before the API server.
    """

    def __init__(
        self,
        cluster: Cluster,
        accounts: ServiceAccounts,
        *,
        web_kubeconfig: Path | None = None,
        database_url: str = "",
        port: int = 0,
    ) -> None:
        self.cluster = cluster
        self._accounts = accounts
        self._web_port, self._redis_port = (port or free_ports(1)[0]), free_ports(1)[0]
        self._folder = cluster.folder / "portal"
        self._database_url = database_url or f"sqlite:///{self._folder / 'portico.sqlite3'}"
        self._secret = secrets.token_urlsafe(32)
        self._programs: list[Program] = []
        self.started = datetime.now(UTC)
        self.web_kubeconfig = web_kubeconfig or self._kubeconfig(accounts.web)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._web_port}"

    def stop(self) -> None:
        """End everything that was started, the web first."""
        while self._programs:
            self._programs.pop().stop()

    def start(self) -> None:
        """Redis, migrations, worker and web, in this order."""
        self._folder.mkdir(exist_ok=True)
        self._start("redis", _redis(self._redis_port), lambda: _redis_answers(self._redis_port))
        self.manage("migrate", "--verbosity=0")
        self._start("worker", [sys.executable, "-m", "celery", *_WORKER], None, self._kubeconfig(self._accounts.worker))
        self._start("web", [*_uvicorn(), "--port", str(self._web_port)], self._healthy, self.web_kubeconfig)

    def manage(self, *arguments: str, text: str = "") -> str:
        """What a management command prints; PortalError with its own words where it fails."""
        done = subprocess.run(
            [sys.executable, CHECKOUT / "manage.py", *arguments],
            input=text,
            env={**self._environment(self.web_kubeconfig), "PORTICO_LOG_LEVEL": "WARNING"},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise PortalError(f"manage.py {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def _start(self, name: str, command: Sequence[str], ready: object, kubeconfig: Path | None = None) -> None:
        program = self.cluster.processes.start(
            f"portal-{name}", command, self._environment(kubeconfig or self.web_kubeconfig)
        )
        self._programs.append(program)
        if callable(ready):
            program.wait_ready(lambda: bool(ready()), READY_SECONDS)

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _kubeconfig(self, account: str) -> Path:
        self.cluster.service_account_kubeconfig(self._accounts.namespace, account)
        return self.cluster.kubeconfig(f"system:serviceaccount:{self._accounts.namespace}:{account}")

    def _environment(self, kubeconfig: Path) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PORTICO_", "DJANGO_"))},
            "PYTHONPATH": str(CHECKOUT),
            "PORTICO_SECRET_KEY": self._secret,
            "PORTICO_KUBECONFIG": str(kubeconfig),
            "PORTICO_PROBE_NAMESPACE": self._accounts.namespace,
            "PORTICO_DATABASE_URL": self._database_url,
            "PORTICO_BROKER_URL": f"redis://{HOST}:{self._redis_port}/0",
        }


_WORKER = ("-A", "portal", "worker", "--pool=threads", f"--concurrency={WORKER_THREADS}", "--loglevel=INFO")


def _uvicorn() -> list[str]:
    # Without the last flag open streams keep the server from ending (uvicorn, "graceful shutdown").
    server = [sys.executable, "-m", "uvicorn", "portal.asgi:application", "--host", HOST]
    return [*server, "--lifespan=off", "--timeout-graceful-shutdown=3"]


def _redis(port: int) -> list[str]:
    server = shutil.which("redis-server")
    if server is None:
        raise PortalError("redis-server is not installed: apt-get install redis-server")
    return [server, "--port", str(port), "--bind", HOST, "--save", "", "--appendonly", "no"]


def _redis_answers(port: int) -> bool:
    client = shutil.which("redis-cli") or "redis-cli"
    done = subprocess.run([client, "-p", str(port), "ping"], capture_output=True, text=True, check=False)
    return done.stdout.strip() == "PONG"
