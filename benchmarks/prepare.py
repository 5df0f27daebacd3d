"""Our driver's prepare and unprepare against a Go driver's on Kubernetes' own helper, over their sockets on one node.

The two take turns call by call in a random order, so that whatever else the machine does meets both alike; the first
calls warm up and are not counted. Both write and flush the same, and both tell the API server the same. The stand-in's
hardware takes no time. PORTICO_BENCH_ROUNDS, _CALLS and _PODS make it smaller, to see whether it works.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from benchmarks import rig
from benchmarks.kubelets import one_by_one
from benchmarks.report import Report
from benchmarks.rig import OURS, Rig, Side
from nodedriver.pb.dra.v1 import api_pb2, api_pb2_grpc

ROUNDS = rig.count("ROUNDS", 5)
CALLS = rig.count("CALLS", 500)
PODS = rig.count("PODS", 20)
WARM_UP = 20
CLAIMS = 20  # of each side, one after the other and again
CALLERS = rig.CARDS


@dataclass(slots=True)
class Times:
    """Seconds of each prepare and unprepare of one side, and processor time of its driver."""

    prepare: list[float] = field(default_factory=list)
    unprepare: list[float] = field(default_factory=list)
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Budgets:
    """The largest allowed ratios; None where a mode has none."""

    median: float | None = None
    late: float | None = None
    cpu: float | None = None


def run(report: Report) -> None:
    """Whole cards, MIG instances and shares one call at a time; eight callers at once; pods on the kubelet."""
    with rig.started() as bench:
        report.value("machine busy before the first round", 100 * rig.wait_for_quiet(), "%")
        _in_turns(report, bench, "whole card", "gpu-0", Budgets(1.25, 1.5, 1.5))
        _in_turns(report, bench, "MIG instance made and removed", "gpu-0-mig-3g40gb-4", Budgets(late=2.0))
        _shares(report, bench)
        _at_once(report, bench)
        _pods(report, bench)


def _in_turns(report: Report, bench: Rig, what: str, device: str, budgets: Budgets) -> None:
    claims = {side.driver: bench.claims(side, [device] * CLAIMS) for side in bench.sides}
    _report(report, what, _measured(bench, claims), budgets)
    bench.forget_claims()


def _shares(report: Report, bench: Rig) -> None:
    """A share of a card whose MPS daemon runs already, for a larger share."""
    ours = bench.sides[0]
    held = bench.claims(ours, ["gpu-1"], _share(50, 1))
    _checked(ours.stub().NodePrepareResources(api_pb2.NodePrepareResourcesRequest(claims=held)), held[0])
    claims = {side.driver: bench.claims(side, ["gpu-1"] * CLAIMS, _share(25, 2)) for side in bench.sides}
    _report(report, "share, its MPS daemon already running", _measured(bench, claims), Budgets(1.25, 1.5, 1.5))
    _checked(ours.stub().NodeUnprepareResources(api_pb2.NodeUnprepareResourcesRequest(claims=held)), held[0])
    bench.forget_claims()


def _share(percent: int, number: int) -> dict[str, Any]:
    consumed = {"sharePercent": str(percent), "memory": "0"}
    return {"shareID": f"00000000-0000-4000-8000-{number:012d}", "consumedCapacity": consumed}


def _measured(bench: Rig, claims: dict[str, list[Any]]) -> dict[str, Times]:
    stubs = {side.driver: side.stub() for side in bench.sides}
    times = {side.driver: Times() for side in bench.sides}
    for _ in range(ROUNDS):
        rig.wait_for_quiet()
        for _ in _turns(stubs, claims, WARM_UP, {driver: Times() for driver in stubs}):
            pass
        before = {side.driver: side.cpu_seconds() for side in bench.sides}
        for _ in _turns(stubs, claims, CALLS, times):
            pass
        for side in bench.sides:
            times[side.driver].cpu += side.cpu_seconds() - before[side.driver]
    return times


def _turns(
    stubs: dict[str, api_pb2_grpc.DRAPluginStub], claims: dict[str, list[Any]], calls: int, times: dict[str, Times]
) -> Iterator[None]:
    order = list(stubs)
    for number in range(calls):
        random.shuffle(order)
        for driver in order:
            claim = claims[driver][number % len(claims[driver])]
            _pair(stubs[driver], claim, times[driver])
        yield


def _pair(stub: api_pb2_grpc.DRAPluginStub, claim: Any, times: Times) -> None:
    prepare, unprepare = (
        api_pb2.NodePrepareResourcesRequest(claims=[claim]),
        api_pb2.NodeUnprepareResourcesRequest(claims=[claim]),
    )
    times.prepare.append(_timed(lambda: _checked(stub.NodePrepareResources(prepare), claim)))
    times.unprepare.append(_timed(lambda: _checked(stub.NodeUnprepareResources(unprepare), claim)))


def _checked(answer: Any, claim: Any) -> None:
    if answer.claims[claim.uid].error:
        raise AssertionError(f"{claim.name}: {answer.claims[claim.uid].error}")


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _report(report: Report, what: str, times: dict[str, Times], budgets: Budgets) -> None:
    ours, peer = (times[driver] for driver in (OURS, rig.PEER))
    for name, mine, theirs in (("prepare", ours.prepare, peer.prepare), ("unprepare", ours.unprepare, peer.unprepare)):
        of, budget = _percentiles(mine, theirs), budgets if name == "prepare" else Budgets()
        for percent, limit in ((50, budget.median), (99, budget.late)):
            _ratio(report, f"{what}: {name} p{percent} to the peer's", of[percent], limit)
    _ratio(report, f"{what}: driver's processor time of a pair to the peer's", ours.cpu / peer.cpu, budgets.cpu)
    for side, each in (("ours", ours), ("peer", peer)):
        report.value(f"{what}: prepare p50, {side}", 1e3 * statistics.median(each.prepare), "ms")
        report.value(f"{what}: processor time of a pair, {side}", 1e3 * each.cpu / (ROUNDS * CALLS), "ms")


def _percentiles(mine: Sequence[float], theirs: Sequence[float]) -> dict[int, float]:
    ours, peers = statistics.quantiles(mine, n=100), statistics.quantiles(theirs, n=100)
    return {percent: ours[percent - 1] / peers[percent - 1] for percent in (50, 99)}


def _ratio(report: Report, figure: str, ratio: float, budget: float | None) -> None:
    if budget is None:
        report.value(figure, ratio, "")
    else:
        report.ratio(figure, ratio, budget)


def _at_once(report: Report, bench: Rig) -> None:
    """Eight callers, a card each: pairs a second, in rounds that the sides take in turn."""
    seconds = {side.driver: 0.0 for side in bench.sides}
    claims = {side.driver: bench.claims(side, [f"gpu-{card}" for card in range(CALLERS)]) for side in bench.sides}
    for number in range(ROUNDS):
        rig.wait_for_quiet()
        for side in bench.sides if number % 2 else reversed(bench.sides):
            seconds[side.driver] += _round_at_once(side, claims[side.driver])
    ours, peer = (ROUNDS * CALLS / seconds[driver] for driver in (OURS, rig.PEER))
    report.ratio("8 callers at once: the peer's pairs a second to ours", peer / ours, budget=1 / 0.6)
    report.value("8 callers at once: pairs a second, ours", ours, "1/s")
    report.value("8 callers at once: pairs a second, peer", peer, "1/s")
    bench.forget_claims()


def _round_at_once(side: Side, claims: list[Any]) -> float:
    stubs = [side.stub() for _ in claims]

    def caller(number: int) -> None:
        times = Times()
        for _ in range(CALLS // CALLERS):
            _pair(stubs[number], claims[number], times)

    with ThreadPoolExecutor(len(claims)) as pool:
        return _timed(lambda: list(pool.map(caller, range(len(claims)))))


def _pods(report: Report, bench: Rig) -> None:
    """The kubelet's own histogram of NodePrepareResources, pods one after another."""
    means = one_by_one(bench, PODS)
    figure = "pods one by one: mean of NodePrepareResources by the kubelet's histogram to the peer's"
    report.ratio(figure, means[OURS] / means[rig.PEER], budget=1.75)
    for side, driver in (("ours", OURS), ("peer", rig.PEER)):
        report.value(f"pods one by one: mean of NodePrepareResources, {side}", 1e3 * means[driver], "ms")
