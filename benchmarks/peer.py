"""The peer of the engine's benchmarks: the oracle, which is built from the scheduler's own Go libraries.

Its times leave out JSON: it says itself how long it compiled, prepared, allocated and evaluated. Selectors are in its
cache from the first round on, and the fastest of its rounds counts, as on our side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from benchmarks import machines
from dra.objects import AllocationResult, DeviceClass, ResourceClaim, to_json
from dra.objects.node import Node
from tests.oracle.asking import Oracle

ROUNDS = 7


class Peer(Oracle):
    """The running oracle. A cluster or a list of devices is sent once and asked about by its name."""

    def keep_devices(self, driver: str, bodies: Iterable[bytes]) -> None:
        """Have the devices parsed for the questions to come."""
        devices = [msgspec.Raw(body) for body in bodies]
        self._answer({"kind": "cel", "driver": driver, "devices": devices, "expressions": [], "keep": "devices"})

    def evaluate(self, driver: str, expression: str) -> tuple[float, list[bool]]:
        """Seconds to evaluate the expression on the kept devices, and what it says of each."""
        question = {"kind": "cel", "driver": driver, "expressions": [expression], "use": "devices"}
        answer = self._answer(question | {"timing": True, "repeat": 3})
        return answer["timing"]["evaluateSeconds"], answer["results"][0]["values"]

    def keep_cluster(self, nodes: Iterable[Node], classes: Iterable[DeviceClass], slices: Iterable[bytes]) -> None:
        """Have the cluster's objects parsed for the questions to come. The first answer is thrown away."""
        question = {
            "kind": "allocate",
            "nodes": [to_json(node) for node in nodes],
            "classes": [to_json(each) for each in classes],
            "slices": [msgspec.Raw(body) for body in slices],
            "claims": [to_json(machines.claim("unused"))],
        }
        self._answer(question | {"keep": "cluster"})

    def allocate(
        self, node: Node, resource_claim: ResourceClaim, allocated: Sequence[ResourceClaim] = ()
    ) -> tuple[float, AllocationResult | None]:
        """Seconds to make an allocator and to ask it about one node, and what it gives."""
        question = {
            "kind": "allocate",
            "use": "cluster",
            "node": to_json(node),
            "claims": [to_json(resource_claim)],
            "allocatedClaims": [to_json(each) for each in allocated],
        }
        answer = self._answer(question | {"timing": True, "repeat": ROUNDS})
        given = answer["allocations"]
        timing = answer["timing"]
        result = None if given is None else msgspec.convert(given[0], AllocationResult)
        return timing["prepareSeconds"] + timing["allocateSeconds"], result

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.ask(question)
        if "error" in answer:
            raise AssertionError(f"the oracle says {answer['error']} ({answer['errorKind']})")
        return answer


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The fastest of some rounds: whatever else the machine does only ever adds."""
    return min(_timed(work) for _ in range(rounds))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
