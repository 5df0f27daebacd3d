"""What surprises in kube-scheduler's allocator, one row a fact: our engine says the same.

The expected answers are those of the scheduler's own libraries, written down in `tests/oracle/examples`.
"""

from __future__ import annotations

import pytest

from dra.allocation import Refused, SchedulerTimesOut, allocate
from tests.oracle import compare, ours
from tests.oracle.asking import Json
from tests.oracle.judge import wrong_in_itself
from tests.oracle.rows import CEL_SURPRISES, SURPRISES, Row, rows

ROWS = rows("allocation")


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_surprise(row: Row) -> None:
    said = ours.answer(row.question)

    assert compare.disagreement(row.question, row.answer, said) is None
    assert wrong_in_itself(row.question, said) is None
    assert scheduler_text(said) == scheduler_text(row.answer)


def test_every_surprise_of_allocation_has_a_row() -> None:
    assert {row.surprise for row in ROWS} == set(SURPRISES) - set(CEL_SURPRISES)


def test_surprise_4_25_of_24_equal_devices_are_refused_at_once_and_the_scheduler_will_not_end() -> None:
    snapshot, claims = ours.read(of_equal_devices(24, 25))

    said = allocate(snapshot, "node-a", claims)

    assert isinstance(said, Refused)
    (warning,) = said.warnings
    assert isinstance(warning, SchedulerTimesOut)
    # The scheduler takes about 2^24 steps: 21 of 20 took it 5 seconds.
    assert 2**22 <= warning.steps <= 2**26


def test_surprise_4_three_of_two_end_soon_in_the_scheduler_too() -> None:
    snapshot, claims = ours.read(of_equal_devices(2, 3))

    assert allocate(snapshot, "node-a", claims) == Refused()


def scheduler_text(answer: Json) -> str | None:
    """The text of an error, without the words that cel-go finds for what does not compile."""
    error: str | None = answer.get("error")
    return error and error.partition("CEL compile error")[0]


def of_equal_devices(there: int, wanted: int) -> Json:
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(there)]
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "node-a", "devices": devices}
    asked = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": wanted}}]}
    return {
        "node": {"metadata": {"name": "node-a"}},
        "slices": [{"metadata": {"name": "slice-a"}, "spec": spec}],
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "claims": [{"metadata": {"namespace": "default", "name": "c"}, "spec": {"devices": asked}}],
    }
