"""Allocation against the scheduler's own libraries: the same questions to both, always the same ones in this test.

`make oracle` asks any number of others.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from tests.oracle import compare, ours, run
from tests.oracle.asking import Oracle
from tests.oracle.judge import wrong_at_timeout, wrong_in_itself
from tests.oracle.rows import Row, rows

pytestmark = pytest.mark.programs

CASES = 6_000
SEED = 4
ROWS = rows("allocation")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as asked:
        yield asked


@pytest.fixture(scope="module")
def tally(oracle: Oracle) -> run.Tally:
    made = run.Tally()
    run.allocate(oracle, made, SEED, CASES)
    return made


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_the_oracle_still_says_what_is_written_down(oracle: Oracle, row: Row) -> None:
    assert oracle.ask(row.question) == row.answer


def test_nothing_differs(oracle: Oracle, tally: run.Tally) -> None:
    assert [run.smallest(oracle, found["question"]) for found in tally.disagreements[:3]] == []


def test_every_feature_was_met_with_and_without_success(tally: run.Tally) -> None:
    assert tally.coverage.lacking(CASES) == []


def test_the_oracle_ran_out_of_time_in_hardly_any_case(tally: run.Tally) -> None:
    assert tally.timeouts <= CASES // 200


def test_another_device_is_a_disagreement() -> None:
    (row, *_) = [row for row in ROWS if row.answer.get("allocations")]
    changed = copy.deepcopy(row.answer)
    changed["allocations"][0]["devices"]["results"][0]["device"] = "another"

    assert compare.disagreement(row.question, row.answer, changed) is not None
    assert wrong_in_itself(row.question, changed) is not None
    assert wrong_in_itself(row.question, row.answer) is None


def test_where_the_oracle_runs_out_of_time_our_engine_answers_and_warns(oracle: Oracle) -> None:
    """23 of 22 equal devices take the scheduler four million steps."""
    devices = [{"name": f"gpu-{number}"} for number in range(22)]
    (row, *_) = [row for row in ROWS if row.surprise == 4]
    question = copy.deepcopy(row.question) | {"timeoutSeconds": 0.1}
    question["slices"][0]["spec"]["devices"] = devices
    question["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 23

    assert oracle.ask(question)["errorKind"] == "timeout"
    said = ours.answer(question)
    assert said["allocations"] is None
    assert wrong_at_timeout(said) is None
    assert wrong_at_timeout({"allocations": None}) is not None
