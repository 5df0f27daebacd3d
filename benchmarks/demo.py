"""From a clean checkout to a served page: `make demo` against `django-admin startproject` with the same packages.

Both make an environment of their own from the same lock file and a package cache that is warm, migrate SQLite and
serve. Linux alone, since memory is read from /proc.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import Report

ROOT = Path(__file__).parents[1]
MORE_SECONDS = 40.0
MEGABYTES = 900.0
SETTLED_SECONDS = 20.0  # after which memory is read: the first workloads run then
PATIENCE_SECONDS = 600.0
READY = re.compile(r"ready: (http://\S+)")


def run(report: Report) -> None:
    """Seconds to a page of both, and the memory of all programs of the demo."""
    with tempfile.TemporaryDirectory(prefix="portico-bench-") as folder:
        warm(Path(folder) / "warm")
        floor, floor_memory = startproject(Path(folder) / "floor")
        ours, memory = demo(Path(folder) / "portico")
    report.value("django-admin startproject, clean folder to page", floor, "s")
    report.value("make demo, clean checkout to page", ours, "s")
    report.value("make demo beyond django-admin startproject", ours - floor, "s", MORE_SECONDS)
    report.value("memory of django-admin startproject", floor_memory, "MB")
    report.value("memory of all programs of the demo", memory, "MB", MEGABYTES)


def warm(folder: Path) -> None:
    """Fill the package cache, untimed."""
    install(folder)


def install(folder: Path) -> Path:
    """An environment with the demo's packages; gives its `bin`."""
    finder = subprocess.run([ROOT / "scripts" / "find-python"], capture_output=True, text=True, check=True)
    subprocess.run([finder.stdout.strip(), "-m", "venv", folder], check=True)
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--require-hashes",
    ]
    subprocess.run([*pip, "-r", ROOT / "requirements" / "demo.txt"], check=True)
    return folder / "bin"


def startproject(folder: Path) -> tuple[float, float]:
    """Seconds and megabytes of an empty project."""
    begin = time.monotonic()
    programs = install(folder / "venv")
    subprocess.run([programs / "django-admin", "startproject", "empty", folder], check=True)
    manage = [str(programs / "python"), str(folder / "manage.py")]
    subprocess.run([*manage, "migrate", "--verbosity=0"], check=True)
    place = f"127.0.0.1:{free_port()}"
    with started([*manage, "runserver", "--noreload", place], folder, folder / "log") as process:
        await_page(f"http://{place}/", process)
        return time.monotonic() - begin, memory_of(process.pid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def demo(checkout: Path) -> tuple[float, float]:
    """Seconds and megabytes of `make demo` in a fresh clone."""
    begin = time.monotonic()
    subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
    log = checkout.with_name("demo.log")
    with started(["make", "--no-print-directory", "demo"], checkout, log) as process:
        while not (found := READY.search(log.read_text())):
            hold(process, begin, log)
            time.sleep(0.05)
        await_page(found[1], process)
        seconds = time.monotonic() - begin
        time.sleep(SETTLED_SECONDS)
        return seconds, memory_of(process.pid)


@contextmanager
def started(command: Sequence[str], folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program while it is looked at, then ended with all that is in its group."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=clean(os.environ), stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)  # make alone would wait for its children
        process.wait(60)


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what this run's own make told its children."""
    own = ("MAKE", "MFLAGS", "PYTHON", "PORTICO_", "DJANGO_", "VIRTUAL_ENV")
    return {name: value for name, value in environment.items() if not name.startswith(own)}


def await_page(url: str, process: subprocess.Popen[bytes]) -> None:
    begin = time.monotonic()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # a demo's way in leads over a cookie
    while True:
        try:
            with browser.open(url, timeout=10) as answer:
                answer.read()
                return
        except urllib.error.URLError:
            hold(process, begin, None)
            time.sleep(0.05)


def hold(process: subprocess.Popen[bytes], begin: float, log: Path | None) -> None:
    """End the benchmark where the program did, or where it takes too long."""
    if process.poll() is not None or time.monotonic() - begin > PATIENCE_SECONDS:
        sys.exit(f"no page from {process.args!r}: {log.read_text()[-2000:] if log else 'see its output'}")


def memory_of(pid: int) -> float:
    """Megabytes of a program and all below it, shared pages counted in part (Pss)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(memory_of(int(child)) for child in children)
