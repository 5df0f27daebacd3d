"""What surprises in kube-scheduler's selectors, one row a fact: our engine says the same.

The expected answers are those of the scheduler's own libraries, written down in `tests/oracle/examples`.
"""

from __future__ import annotations

import pytest

from tests.oracle import compare, ours
from tests.oracle.cases import selection
from tests.oracle.rows import CEL_SURPRISES, Row, rows

ROWS = rows("cel")


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_surprise(row: Row) -> None:
    said = ours.answer(row.question)

    assert compare.disagreement(row.question, row.answer, said) is None


def test_every_surprise_of_selectors_has_a_row() -> None:
    assert {row.surprise for row in ROWS} == set(CEL_SURPRISES)


def test_surprise_56_random_devices_never_have_one_name_twice() -> None:
    """Which of `model` and `gpu.example.com/model` a selector sees is random upstream: such a case says nothing."""
    for seed in range(200):
        for device in selection.question(seed)["devices"]:
            for named in (device.get("attributes", {}), device.get("capacity", {})):
                full = {name if "/" in name else f"{selection.DRIVER}/{name}" for name in named}
                assert len(full) == len(named)
