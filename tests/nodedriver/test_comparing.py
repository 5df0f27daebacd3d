"""The table of what checkpoint, API server, CDI folder and hardware say of a claim: each row named, none missing."""

import pytest

from nodedriver.comparing import ROWS, Allocation, Entry, Found, Verdict, combinations, row_of

OURS, GONE, UNKNOWN = Allocation.OURS, Allocation.GONE, Allocation.UNKNOWN
EXPECTED = {
    Found(Entry.COMPLETED, OURS, file=True, silicon=True): Verdict.LEAVE,
    Found(Entry.COMPLETED, UNKNOWN, file=True, silicon=True): Verdict.LEAVE,
    Found(Entry.COMPLETED, OURS, file=False, silicon=True): Verdict.REPAIR,
    Found(Entry.COMPLETED, OURS, file=True, silicon=False): Verdict.REPAIR,
    Found(Entry.COMPLETED, UNKNOWN, file=False, silicon=False): Verdict.REPAIR,
    Found(Entry.COMPLETED, GONE, file=True, silicon=True): Verdict.TAKE_BACK,
    Found(Entry.COMPLETED, GONE, file=False, silicon=False): Verdict.TAKE_BACK,
    Found(Entry.STARTED, OURS, file=False, silicon=False): Verdict.LEAVE,
    Found(Entry.STARTED, UNKNOWN, file=True, silicon=True): Verdict.LEAVE,
    Found(Entry.STARTED, GONE, file=False, silicon=True): Verdict.TAKE_BACK,
    Found(Entry.ABSENT, OURS, file=True, silicon=True): Verdict.RESTORE,
    Found(Entry.ABSENT, GONE, file=True, silicon=False): Verdict.RESTORE,
    Found(Entry.ABSENT, UNKNOWN, file=False, silicon=True): Verdict.LEAVE,
}


@pytest.mark.parametrize(("found", "verdict"), EXPECTED.items(), ids=str)
def test_verdict(found: Found, verdict: Verdict) -> None:
    assert row_of(found).verdict is verdict


def test_each_combination_is_in_one_row_and_no_row_is_idle() -> None:
    assert len(combinations()) == 3 * 3 * 2 * 2
    assert {row_of(found).name for found in combinations()} == {row.name for row in ROWS}


def test_without_an_answer_nothing_is_taken_back() -> None:
    unanswered = [found for found in combinations() if found.allocation is UNKNOWN]
    assert Verdict.TAKE_BACK not in {row_of(found).verdict for found in unanswered}
