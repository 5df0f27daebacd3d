"""The rooms of `dra` are pure, and their tests hold them to it: no network, no process, no file written, no clock.

An audit hook sees what the interpreter does on behalf of a frame of `dra`; the clock has no audit event, so `time` is
wrapped. `DOORS` are tested against real servers elsewhere.
"""

import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import pytest

BARRED: Final = ("socket.", "subprocess.", "os.", "shutil.", "tempfile.", "urllib.", "ftplib.", "http.")
READS: Final = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk"})  # the import system's own
CLOCKS: Final = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")
DOORS: Final = frozenset(f"dra.kube.{room}" for room in ("client", "access", "connections", "packaged", "pooled"))
_armed = False


class ImpureError(BaseException):
    """A pure room opened a door. No Exception, so that nothing under test can swallow it."""


@pytest.fixture(autouse=True)
def pure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bar the doors for each test that runs no program beside itself."""
    global _armed  # noqa: PLW0603 - an audit hook can't be taken away, only told to look away
    if request.node.get_closest_marker("programs"):
        yield
        return
    for name in CLOCKS:
        monkeypatch.setattr(time, name, _guarded(name, getattr(time, name)))
    _armed = True
    yield
    _armed = False


def _guarded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        if _on_behalf_of_dra():
            raise ImpureError(f"time.{name} was called from a pure room")
        return real(*arguments)

    return call


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _armed or not (event == "open" or event.startswith(BARRED)) or event in READS:
        return
    if event == "open" and not _writes(arguments):
        return
    if _on_behalf_of_dra():
        raise ImpureError(f"{event} {arguments!r} was done on behalf of a pure room")


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode = arguments[1] if len(arguments) > 1 else ""
    # Compiled modules are written by the import system, whoever imports.
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def _on_behalf_of_dra() -> bool:
    """Whether the nearest frame of the project is one of `dra`: a test that hands in a callback acts for itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        room = str(frame.f_globals.get("__name__"))
        if room.startswith("tests.") and room != __name__:
            return False
        if room.startswith("dra."):
            return room not in DOORS
        frame = frame.f_back
    return False


sys.addaudithook(_hook)
