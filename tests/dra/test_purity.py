"""The bar around the pure rooms holds: a room that opens a door is caught, whichever door it is."""

import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.dra.conftest import ImpureError

CULPRITS = {
    "writes a file": "open(path, 'w')",
    "appends to a file": "open(path, 'ab')",
    "connects": "__import__('socket').create_connection(('127.0.0.1', 9))",
    "binds": "__import__('socket').socket().bind(('127.0.0.1', 0))",
    "starts a process": "__import__('subprocess').run(['true'])",
    "removes a file": "__import__('os').remove(path)",
    "reads the clock": "__import__('time').time()",
    "sleeps": "__import__('time').sleep(0)",
}


@pytest.mark.parametrize("source", CULPRITS.values(), ids=CULPRITS.keys())
def test_a_room_that_opens_a_door_is_caught(source: str, tmp_path: Path) -> None:
    room = ModuleType("dra.culprit")
    room.__dict__["path"] = str(tmp_path / "file")
    with pytest.raises(ImpureError):
        exec(source, room.__dict__)


def test_what_a_test_does_itself_is_its_own_affair(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0
    assert time.monotonic() > 0


def test_a_room_may_read_what_it_is_made_of() -> None:
    room = ModuleType("dra.reader")
    room.__dict__["path"] = __file__
    exec("with open(path) as file:\n    content = file.read()", room.__dict__)
    assert "what_it_is_made_of" in room.__dict__["content"]
