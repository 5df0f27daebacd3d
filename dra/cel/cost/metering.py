"""Puts a meter into the closures of an expression: each node charges what it costs when it is evaluated.

An observer for `dra.cel.evaluate.plan`; the meter is the last entry of the frame. Which node charges what follows
cel-go interpreter/runtimecost.go and the `evalWatch…` classes of interpreter/interpretable.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dra.cel.ast import Call, Checked, Comprehension, ListNode, MapNode, Node, Select, StructNode
from dra.cel.cost.actual import call_cost
from dra.cel.cost.calls import LIST_BASE, MAP_BASE, STRUCT_BASE
from dra.cel.cost.meter import Meter
from dra.cel.cost.roles import Roles, is_condition, operand_of, reaches
from dra.cel.errors import CelRuntimeError
from dra.cel.evaluate import Plan, plan
from dra.cel.frames import Eval, Frame
from dra.cel.values import Optional

type Charge = Callable[[Meter, object], None]
type _Seen = Callable[[Meter, object], bool]

_ALTERNATIVES: Final = frozenset({"or", "orValue"})
_LOGICAL: Final = frozenset({"_&&_", "_||_"})
_BASES: Final[dict[type[Node], int]] = {ListNode: LIST_BASE, MapNode: MAP_BASE, StructNode: STRUCT_BASE}


def metered(checked: Checked) -> Plan:
    """A plan whose closures charge a `Meter`, which the frame must have behind its slots."""
    constants = plan(checked, lambda _node, evaluate: evaluate).constants
    return plan(checked, _Metering(checked, constants).observe)


class _Metering:
    def __init__(self, checked: Checked, constants: Mapping[int, object]) -> None:
        self._roles = Roles(checked, constants)

    def observe(self, node: Node, evaluate: Eval) -> Eval:
        """The closure with its price."""
        if node.id in self._roles.constants:
            return _constant(node.id, evaluate)
        return _watched(node.id, evaluate, self._charge(node))

    def _charge(self, node: Node) -> Charge:
        roles = self._roles
        if roles.is_attribute(node):
            return self._attribute(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Comprehension):
            return _free(node.id, node.iter_range.id)
        base = _BASES[type(node)]
        return _made(node.id, [part.id for part in roles.parts(node)], base)

    # --- calls ---

    def _call(self, node: Call) -> Charge:
        if node.function in _LOGICAL:
            return _free(node.id, *(each.id for each in node.args))
        operands = self._roles.operands(node)
        if (node.function in _ALTERNATIVES and len(operands) == 2) or self._roles.is_set_test(node):
            return _free(node.id)
        function, overload = self._roles.function(node), self._roles.overload(node)
        node_id, operand_ids = node.id, [each.id for each in operands]

        def charge(meter: Meter, outcome: object) -> None:
            args = meter.take(operand_ids)
            cost = 0 if args is None else call_cost(function, overload, args, outcome)
            meter.push(node_id, outcome, cost=cost)

        return charge

    # --- attributes ---

    def _attribute(self, node: Node) -> Charge:
        whole = None if node.id in self._roles.resolved else self._whole(node)
        if isinstance(node, Call | Select) and reaches(node):
            return self._reach(node, whole)
        return _nothing if whole is None else whole

    def _whole(self, node: Node) -> Charge:
        """The price of an attribute as a whole: 1 for a name, or for fields and keys of a name or a value."""
        root, node_id = self._roles.root_of(node), node.id
        dropped, cost = [node_id], 1
        if is_condition(root) and isinstance(root, Call):
            condition, *results = (each.id for each in root.args)
            dropped = [*(reversed(results) if root is node else [node_id]), condition]
            cost = 0
        if isinstance(node, Select) and node.test_only:
            cost -= 1

        def charge(meter: Meter, outcome: object) -> None:
            meter.drop(*dropped)
            meter.push(node_id, outcome, cost=cost)

        return charge

    def _reach(self, node: Node, whole: Charge | None) -> Charge:
        """The price of one field or key, if it was come to, and of the attribute that ends with it."""
        seen, node_id = self._seen(node), node.id
        computed = isinstance(node, Call) and node.function != "_?._" and not self._is_plain_key(node.args[1])

        def charge(meter: Meter, outcome: object) -> None:
            if seen(meter, outcome):
                if computed:
                    meter.drop(node_id)
                meter.push(node_id, outcome, cost=1)
            if whole is not None:
                whole(meter, outcome)

        return charge

    def _is_plain_key(self, key: Node) -> bool:
        return key.id in self._roles.constants or self._roles.is_attribute(key)

    def _seen(self, node: Node) -> _Seen:
        """Whether a field or key was come to: not below an error, and if optional only where there is a value."""
        operand, node_id = operand_of(node), node.id
        asks = isinstance(node, Call) and node.function != "_[_]"
        inner = reaches(operand) and operand.id not in self._roles.constants

        def seen(meter: Meter, outcome: object) -> bool:
            given = meter.outcomes[operand.id]
            if isinstance(given, CelRuntimeError):
                return False
            below = operand.id in meter.optional if inner else isinstance(given, Optional)
            if not (asks or below):
                meter.optional.discard(node_id)
                return True
            meter.optional.add(node_id)
            if isinstance(given, Optional) and not given.present:
                return False
            return outcome is True if isinstance(node, Select) and node.test_only else _is_present(outcome)

        return seen


def _is_present(outcome: object) -> bool:
    return isinstance(outcome, Optional) and outcome.present


def _nothing(_meter: Meter, _outcome: object) -> None:
    """What an attribute inside of another costs by itself."""


def _watched(node_id: int, evaluate: Eval, charge: Charge) -> Eval:
    def run(frame: Frame) -> object:
        meter: Meter = frame[-1]
        try:
            value = evaluate(frame)
        except CelRuntimeError as error:
            meter.outcomes[node_id] = error
            charge(meter, error)
            raise
        meter.outcomes[node_id] = value
        charge(meter, value)
        return value

    return run


def _constant(node_id: int, evaluate: Eval) -> Eval:
    def run(frame: Frame) -> object:
        value = evaluate(frame)
        if frame:  # an empty one is the planner's, which makes constants of constants
            meter: Meter = frame[-1]
            meter.outcomes[node_id] = value
            meter.push(node_id, value)
        return value

    return run


def _free(node_id: int, *dropped: int) -> Charge:
    def charge(meter: Meter, outcome: object) -> None:
        meter.drop(*dropped)
        meter.push(node_id, outcome)

    return charge


def _made(node_id: int, parts: list[int], cost: int) -> Charge:
    def charge(meter: Meter, outcome: object) -> None:
        meter.take(parts)
        meter.push(node_id, outcome, cost=cost)

    return charge
