"""The table of card modes: the ways through it, and the drawing in the docs."""

from pathlib import Path

import pytest

from nodedriver.cardmodes import TRANSITIONS, CardMode, Change, drawing, path
from nodedriver.facts import MigModeChange

DOCUMENT = Path(__file__).parents[2] / "docs" / "dev" / "node-driver.md"
HOPPER, AMPERE, PLAIN = MigModeChange.WHEN_IDLE, MigModeChange.NEEDS_RESET, MigModeChange.IMPOSSIBLE
WAYS = [
    (CardMode.WHOLE, CardMode.WHOLE, HOPPER, ()),
    (CardMode.WHOLE, CardMode.MIG, HOPPER, (Change.ENTER_MIG,)),
    (CardMode.MIG, CardMode.VFIO, HOPPER, (Change.LEAVE_MIG, Change.BIND_VFIO)),
    (CardMode.VFIO, CardMode.MIG, HOPPER, (Change.UNBIND_VFIO, Change.ENTER_MIG)),
    (CardMode.WHOLE, CardMode.MIG, AMPERE, (Change.TAKE_OUT, Change.RESET)),
    (CardMode.MIG, CardMode.WHOLE, AMPERE, (Change.TAKE_OUT, Change.RESET)),
    (CardMode.MIG, CardMode.VFIO, AMPERE, (Change.TAKE_OUT, Change.RESET, Change.BIND_VFIO)),
    (CardMode.WHOLE, CardMode.VFIO, PLAIN, (Change.BIND_VFIO,)),
    (CardMode.WHOLE, CardMode.MIG, PLAIN, None),
]


@pytest.mark.parametrize(("source", "target", "mig", "changes"), WAYS)
def test_the_shortest_way(
    source: CardMode, target: CardMode, mig: MigModeChange, changes: tuple[Change, ...] | None
) -> None:
    way = path(source, target, mig)
    assert (None if way is None else tuple(row.change for row in way)) == changes


def test_every_mode_can_be_left_and_reached() -> None:
    assert {row.source for row in TRANSITIONS} == {row.target for row in TRANSITIONS} == set(CardMode)


def test_the_drawing_in_the_docs_is_the_table() -> None:
    """`python -c "from nodedriver.cardmodes import drawing; print(drawing())"` prints it anew."""
    assert f"```mermaid\n{drawing()}\n```" in DOCUMENT.read_text()
