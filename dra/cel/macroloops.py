"""Recognizes what all, exists, exists_one, map, filter and transformList expand to; gives it a closure of its own."""

from __future__ import annotations

from collections.abc import Callable

from dra.cel import looping
from dra.cel.ast import Call, Comprehension, ListNode, Node
from dra.cel.frames import Eval
from dra.cel.looping import Slots
from dra.cel.macros import ACCUMULATOR


def macro_loop(node: Comprehension, source: Eval, slots: Slots, plan: Callable[[Node], Eval]) -> Eval | None:
    """The closure of a comprehension that such a macro made, None for any other; `plan` makes those of its parts."""
    step = node.loop_step
    if node.accu_var != ACCUMULATOR or not isinstance(step, Call):
        return None
    if step.function in ("_&&_", "_||_"):
        return looping.quantified(source, plan(step.args[1]), slots, until=step.function == "_||_")
    only: Node | None = None
    if step.function == "_?_:_":
        only, grown, _ = step.args
        assert isinstance(grown, Call)
        step = grown
    if step.function != "_+_":
        return None
    return _gathering(step.args[1], only, (source, slots), plan)


def _gathering(added: Node, only: Node | None, over: tuple[Eval, Slots], plan: Callable[[Node], Eval]) -> Eval:
    """Of what is added where the condition `only` holds: an element of a list, or 1 to a count."""
    source, slots = over
    if isinstance(added, ListNode):
        return looping.gathered(source, None if only is None else plan(only), plan(added.elements[0]), slots)
    assert only is not None
    return looping.counted_one(source, plan(only), slots)
