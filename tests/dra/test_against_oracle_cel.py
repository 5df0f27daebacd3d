"""Selectors against the scheduler's own libraries: the same questions to both, always the same ones in this test.

`make oracle` asks any number of others.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle import run
from tests.oracle.asking import Oracle, OracleError
from tests.oracle.coverage import MEASURED
from tests.oracle.rows import Row, rows

pytestmark = pytest.mark.programs

CASES = 20_000
SEED = 4
ROWS = rows("cel")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as asked:
        yield asked


@pytest.fixture(scope="module")
def tally(oracle: Oracle) -> run.Tally:
    made = run.Tally()
    run.select(oracle, made, SEED, CASES)
    return made


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_the_oracle_still_says_what_is_written_down(oracle: Oracle, row: Row) -> None:
    assert oracle.ask(row.question) == row.answer


def test_nothing_differs(oracle: Oracle, tally: run.Tally) -> None:
    assert [run.smallest(oracle, found["question"]) for found in tally.disagreements[:3]] == []


def test_every_function_of_the_environment_was_called(tally: run.Tally) -> None:
    least = run.LEAST_CALLS * CASES // MEASURED

    assert {name: tally.functions[name] for name in run.functions() if tally.functions[name] < least} == {}


def test_values_errors_and_texts_that_do_not_compile_were_met(tally: run.Tally) -> None:
    assert all(tally.values[kind] > CASES // 100 for kind in ("true", "false", "error", "compileError"))


def test_a_wrong_question_is_an_error_of_the_test(oracle: Oracle) -> None:
    with pytest.raises(OracleError, match="unknown field"):
        oracle.ask({"kind": "cel", "driver": "gpu.example.com", "expression": ["true"]})
