"""What is done with a card that needs a reset, and what its claims are told: the table, without a card."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dra.names import ClaimRef, ClaimUID
from dra.objects import Condition
from nodedriver.cardmodes import CardMode
from nodedriver.facts import PciAddress
from nodedriver.maintenance.awaited import Awaited
from nodedriver.maintenance.deciding import TRIES, Decision, Kept, Phase, Rules, Seen, decide, say

GPU = PciAddress("0000:07:00.0")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES = Rules("gpu.portico.dev", 480)
WHOLE, MIG = CardMode.WHOLE, CardMode.MIG
IDLE = Seen(WHOLE, WHOLE)
HELD = Seen(WHOLE, WHOLE, ("process 7 (dcgm)",))
WAITS = Awaited(
    ref=ClaimRef("ml-team", "part", ClaimUID("a")), device="gpu-0-mig-3g40gb-4", share_id=None, gpu=GPU, mode=MIG
)
WORKING = Kept(gpu=GPU, target=MIG, since="2026-01-01T00:00:00Z")
TRIED = replace(WORKING, tries=1, why="nvidia-smi said no")
FAILED = replace(WORKING, phase=Phase.FAILED, why="nvidia-smi said no")
LEFT = replace(FAILED, held=True)


@pytest.mark.parametrize(
    ("seen", "awaited", "kept", "decision"),
    [
        (IDLE, [], None, Decision(None)),
        (IDLE, [WAITS], None, Decision(WORKING)),
        (IDLE, [WAITS], WORKING, Decision(replace(WORKING, tries=1), switch=True)),
        (IDLE, [WAITS], replace(TRIED, tries=TRIES), Decision(replace(TRIED, tries=TRIES, phase=Phase.FAILED))),
        (Seen(MIG, MIG), [WAITS], WORKING, Decision(None)),
        (HELD, [], WORKING, Decision(None)),
        (IDLE, [replace(WAITS, mode=None)], None, Decision(None)),
        (HELD, [WAITS], FAILED, Decision(FAILED)),
        (IDLE, [WAITS], FAILED, Decision(FAILED)),
        (HELD, [], LEFT, Decision(LEFT)),
        (IDLE, [], LEFT, Decision(None)),
        (Seen(MIG, MIG), [], FAILED, Decision(None)),
        (Seen(WHOLE, MIG), [], WORKING, Decision(WORKING)),
        (Seen(WHOLE, None), [], WORKING, Decision(WORKING)),
        (Seen(WHOLE, MIG), [], LEFT, Decision(LEFT)),
        (Seen(WHOLE, MIG), [], None, Decision(None)),
    ],
    ids=[
        "nobody waits", "the first that waits", "nothing in the way", "tried often enough", "the mode is there",
        "withdrawn", "admin access", "failed", "failed, and free", "held, still held", "held, and left",
        "changed by hand", "withdrawn, with a wish left", "withdrawn, and the card does not answer",
        "held, and left with a wish", "somebody's wish",
    ],
)  # fmt: skip
def test_the_next_step(seen: Seen, awaited: list[Awaited], kept: Kept | None, decision: Decision) -> None:
    assert decide(seen, awaited, kept, RULES, NOW) == decision


def test_who_holds_a_card_may_do_so_until_the_deadline() -> None:
    just = decide(HELD, [WAITS], WORKING, RULES, NOW + timedelta(seconds=479)).kept
    over = decide(HELD, [WAITS], WORKING, RULES, NOW + timedelta(seconds=480)).kept
    assert just is not None
    assert over is not None
    assert (just.phase, over.phase, just.held, over.held) == (Phase.WORKING, Phase.FAILED, True, True)
    assert just.why == "GPU 0000:07:00.0 can't change to mode mig while it is held by process 7 (dcgm)"
    assert over.why.startswith(f"{just.why}; after 480 s that was given up.")


def told(each: Awaited) -> list[tuple[str, str, str]]:
    return [(condition.type.partition("/")[2], condition.status, condition.reason) for condition in each.said]


@pytest.mark.parametrize(
    ("each", "seen", "kept", "says"),
    [
        (WAITS, Seen(MIG, MIG), None, [("mode-ready", "True", "ModeReady")]),
        (replace(WAITS, mode=None), IDLE, None, [("mode-ready", "True", "ModeReady")]),
        (WAITS, IDLE, None, []),
        (WAITS, IDLE, WORKING, [("mode-ready", "False", "Resetting")]),
        (WAITS, HELD, replace(WORKING, why="held"), [("mode-ready", "False", "Waiting")]),
        (
            WAITS, HELD, FAILED,
            [("mode-ready", "False", "ModeChangeFailed"), ("mode-failed", "True", "ModeChangeFailed")],
        ),
    ],
    ids=["served", "admin access", "not begun", "in the middle", "held", "failed"],
)  # fmt: skip
def test_what_a_claim_is_told(each: Awaited, seen: Seen, kept: Kept | None, says: list[tuple[str, str, str]]) -> None:
    said = say(each, seen, kept, RULES, NOW)
    assert told(said) == says
    assert say(said, seen, kept, RULES, NOW + timedelta(hours=1)) == said


def test_a_claim_that_was_told_how_it_ended_is_not_told_again() -> None:
    failed = say(WAITS, HELD, FAILED, RULES, NOW)
    assert say(failed, Seen(MIG, MIG), None, RULES, NOW) == failed
    assert decide(IDLE, [failed], None, RULES, NOW) == Decision(None)
    assert failed.said[1] == Condition(
        type="gpu.portico.dev/mode-failed",
        status="True",
        reason="ModeChangeFailed",
        message="nvidia-smi said no",
        last_transition_time="2026-01-01T00:00:00Z",
    )
