"""How often a wish fits on nodes that reach the same devices: counted by granting it, node after node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dra.allocation import Allocated, Snapshot
from dra.fleet.answer import MAX_INSTANCES, Instances
from dra.fleet.grants import allocated_claims
from dra.fleet.nodeanswers import NodeAnswers
from dra.fleet.podrules import PodRoom
from dra.fleet.question import Question


def joint_instances(
    snapshot: Snapshot,
    question: Question,
    nodes: Iterable[str],
    rooms: Mapping[str, PodRoom] | None,
    answers: NodeAnswers,
) -> Instances:
    """The total when each node, by name, is filled before the next; with `rooms` only as far as pods have room."""
    total, bounded = 0, True
    for node in sorted(nodes):
        pods = MAX_INSTANCES + 1 if rooms is None else rooms[node].pods
        snapshot, on_node = _fill(snapshot, question, node, pods, answers)
        total += on_node.count
        bounded = bounded and on_node.bounded
    return Instances(total, bounded)


def _fill(
    snapshot: Snapshot, question: Question, node: str, pods: int, answers: NodeAnswers
) -> tuple[Snapshot, Instances]:
    most = min(pods, MAX_INSTANCES)
    for count in range(most):
        answer = answers.answer(snapshot, question, node)
        if not isinstance(answer, Allocated):
            return snapshot, Instances(count)
        key = snapshot.node(node).key
        for claim in allocated_claims(question.claims, answer, f"{node}#{count}"):
            snapshot = snapshot.with_claim(claim)
        if snapshot.node(node).key is key:
            break
    return snapshot, Instances(most, bounded=pods <= MAX_INSTANCES)
