"""Selectors of every library about a few devices: `selectors.json` has the answers of kube-scheduler's libraries."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dra.cel import CelCompileError, CelDevice, compile_expression
from dra.cel.environment import EnvironmentName
from dra.objects import Device
from tests.dra.cel.asking import word


class Questions(msgspec.Struct, frozen=True):
    """Devices, and rows of a selector with its answer for each of them, or one that it does not compile."""

    name: str
    driver: str
    environment: EnvironmentName
    devices: list[Device]
    rows: list[list[str]]


QUESTIONS = msgspec.json.decode((Path(__file__).parent / "selectors.json").read_bytes(), type=list[Questions])
ROWS = [(each, text, answers) for each in QUESTIONS for text, *answers in each.rows]


@pytest.mark.parametrize(("asked", "text", "answers"), ROWS, ids=[f"{each.name}: {text}" for each, text, _ in ROWS])
def test_selector(asked: Questions, text: str, answers: list[str]) -> None:
    try:
        program = compile_expression(text, environment=asked.environment)
    except CelCompileError:
        assert answers == ["does not compile"]
        return
    devices = [
        CelDevice.of(asked.driver, each.attributes, each.capacity, allow_multiple=bool(each.allow_multiple_allocations))
        for each in asked.devices
    ]
    assert [word(program, each) for each in devices] == answers
