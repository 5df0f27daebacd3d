"""Whatever is seen of a card, and whenever: how its reset ended is known before the scheduler gives up (600 s)."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra.names import ClaimRef, ClaimUID
from nodedriver.cardmodes import CardMode
from nodedriver.config import LONGEST_RESET_WAIT
from nodedriver.facts import PciAddress
from nodedriver.maintenance.awaited import Awaited
from nodedriver.maintenance.deciding import TRY_SECONDS, Kept, Phase, Rules, Seen, decide, say
from nodedriver.resets import RESET_SECONDS

GPU = PciAddress("0000:07:00.0")
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
WAITS = Awaited(
    ref=ClaimRef("ml-team", "part", ClaimUID("a")), device="gpu-0-mig-3g40gb-4", share_id=None, gpu=GPU,
    mode=CardMode.MIG,
)  # fmt: skip
IDLE, DONE = Seen(CardMode.WHOLE, CardMode.WHOLE), Seen(CardMode.MIG, CardMode.MIG)
HELD = replace(IDLE, obstacles=("process 7 (dcgm)",))
UNSEEN = replace(IDLE, obstacles=("a client that NVML does not name",))


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the card: seconds after the one before, whether it is held, and how a try that it allows goes on."""

    after: float
    held: bool
    ends: str
    takes: float


LOOKS = st.builds(
    Look,
    after=st.floats(0, 30),
    held=st.booleans(),
    ends=st.sampled_from(["done", "refused", "in use", "died"]),
    takes=st.floats(0, TRY_SECONDS),
)


def attempt(look: Look, kept: Kept, rules: Rules, now: datetime) -> Kept | None:
    """What is kept after a try, as `flow` keeps it; a driver that died in it kept what it had before."""
    match look.ends:
        case "refused":
            return replace(kept, why="nvidia-smi said no")
        case "in use":
            return decide(UNSEEN, [WAITS], replace(kept, tries=kept.tries - 1), rules, now).kept
        case "died":
            return kept
    return decide(DONE, [WAITS], kept, rules, now).kept


@given(wait=st.integers(0, LONGEST_RESET_WAIT), looks=st.lists(LOOKS, max_size=60))
def test_it_is_settled_in_time_for_any_sequence_of_looks(wait: int, looks: list[Look]) -> None:
    rules, now = Rules("gpu.portico.dev", wait), BEGUN
    kept = decide(IDLE, [WAITS], None, rules, now).kept
    for look in [*looks, *[Look(30, held=False, ends="refused", takes=TRY_SECONDS)] * 20]:
        assert kept is not None
        now += timedelta(seconds=look.after)
        decision = decide(HELD if look.held else IDLE, [WAITS], kept, rules, now)
        kept = decision.kept
        if decision.switch and kept is not None:
            now += timedelta(seconds=look.takes)
            assert now <= BEGUN + timedelta(seconds=570)
            kept = attempt(look, kept, rules, now)
        if kept is None or kept.phase is Phase.FAILED:
            break
        assert now <= BEGUN + timedelta(seconds=wait + 30 + TRY_SECONDS)
    assert kept is None or kept.phase is Phase.FAILED
    assert kept is None or say(WAITS, IDLE, kept, rules, now).said[1].message


@pytest.mark.parametrize("wait", [0, 1, LONGEST_RESET_WAIT])
def test_a_card_that_nobody_holds_is_tried_however_short_the_wait(wait: int) -> None:
    kept = decide(IDLE, [WAITS], None, Rules("gpu.portico.dev", wait), BEGUN).kept
    assert decide(IDLE, [WAITS], kept, Rules("gpu.portico.dev", wait), BEGUN + timedelta(seconds=29)).switch


@pytest.mark.parametrize(("tries", "offered_again"), [(0, True), (2, False)])
def test_without_time_for_another_try_it_has_failed(tries: int, *, offered_again: bool) -> None:
    rules = Rules("gpu.portico.dev", LONGEST_RESET_WAIT)
    before = Kept(gpu=GPU, target=CardMode.MIG, since="2026-01-01T00:00:00Z", tries=tries)
    late = BEGUN + timedelta(seconds=511)
    after = decide(IDLE, [WAITS], before, rules, late)
    assert (after.switch, after.kept and after.kept.phase) == (False, Phase.FAILED)
    assert after.kept is not None
    assert after.kept.why == f"GPU {GPU} could not be changed to mode mig in time, after {tries} tries"
    told = say(WAITS, IDLE, after.kept, rules, late)
    assert (decide(IDLE, [told], after.kept, rules, late).kept is None) == offered_again


def test_a_reset_has_room_in_a_try() -> None:
    """And a call of NVML that does not come back, which is waited for 20 s."""
    assert TRY_SECONDS >= RESET_SECONDS + 20
