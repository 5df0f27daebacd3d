"""With and without a meter an expression says the same, and what goes without one stays below the limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dra.cel import CelCompileError, CelDevice, CelRuntimeError, Program, compile_expression
from dra.cel.cost.bounds import may_exceed
from dra.cel.cost.meter import LIMIT
from tests.dra.cel.asking import BARE, FULL
from tests.oracle.cases.dice import Dice
from tests.oracle.cases.expressions import expression


def said(program: Program, device: CelDevice) -> str:
    try:
        return str(program.matches(device))
    except CelRuntimeError as error:
        return str(error)


@given(st.integers(0, 2**32))
def test_a_meter_changes_nothing_but_the_price(seed: int) -> None:
    text = expression(Dice(seed))
    try:
        program = compile_expression(text)
    except CelCompileError:
        return
    for device in (FULL, BARE):
        result, cost = program.cost(device)
        assert str(result) == said(program, device), text
        assert cost is not None
        assert cost <= LIMIT or may_exceed(program.checked, program.max_cost), text
