"""The oracle's surprises as rows: questions and the real answers of kube-scheduler's libraries, written down as data.

`examples/*.json`; each row names the surprise by its number. The same rows are put to our engine, without Go, and to
the oracle, which must still say what it said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tests.oracle.asking import Json

SURPRISES = range(1, 58)
CEL_SURPRISES = range(46, 58)


class Row(msgspec.Struct, frozen=True):
    """One question with its answer."""

    surprise: int
    name: str
    question: Json
    answer: Json

    @property
    def id(self) -> str:
        return f"{self.surprise}: {self.name}"


def rows(kind: Literal["allocation", "cel"]) -> list[Row]:
    """All rows of that kind."""
    return msgspec.json.decode((Path(__file__).parent / "examples" / f"{kind}.json").read_bytes(), type=list[Row])
