"""Which rules of allocation a case touches, read from the question and its answer, and how often each was met.

A feature counts as seen in an allocation only where the answer shows it: a device that draws on counters, a share of a
capacity with that kind of policy, a tolerated taint. In a case that does not allocate, it has to stand in the question,
on devices or requests that matter on this node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.oracle.asking import Json
from tests.oracle.cases import claims as random_claims

# Each of these is in at least ENOUGH cases that allocate and in as many that don't, of MEASURED cases.
MEASURED = 20_000
ENOUGH = 500
POLICIES = ("none", "default", "validRange", "validRange+step", "validValues")
FEATURES = (
    "counters",
    *(f"capacity {kind}" for kind in POLICIES),
    "firstAvailable",
    "All",
    "matchAttribute",
    "distinctAttribute",
    "taints",
    "tolerations",
    "taint rules",
    "admin access",
    "incomplete pool",
    "invalid pool",
    "several claims",
    "binding conditions",
    "shared devices in use",
    "node selectors",
    "per-device nodes",
    "class and claim configuration",
    "selectors that may fail",
    "other gates",
)


@dataclass
class Coverage:
    """Counts of features by outcome."""

    allocates: Counter[str] = field(default_factory=Counter)
    refuses: Counter[str] = field(default_factory=Counter)
    fails: Counter[str] = field(default_factory=Counter)

    def add(self, question: Json, answer: Json) -> None:
        """Count one case; time-outs say nothing."""
        if answer.get("errorKind") == "timeout":
            return
        column = self.column(answer)
        column["cases"] += 1
        column.update(set(features(question, answer)))

    def column(self, answer: Json) -> Counter[str]:
        if answer.get("allocations") is not None:
            return self.allocates
        return self.fails if answer.get("errorKind") == "fatal" else self.refuses

    def report(self) -> Json:
        """Per feature: cases that allocate, that do not fit here, and that end in an error for all nodes."""
        return {
            name: {"allocates": self.allocates[name], "refuses": self.refuses[name], "fails": self.fails[name]}
            for name in ("cases", *FEATURES)
        }

    def lacking(self, cases: int) -> list[str]:
        """Features below their share of so many cases, in words."""
        least = ENOUGH * cases // MEASURED
        return [
            f"{name} {word} in {count} cases, wanted are {least}"
            for name in FEATURES
            for word, count in (
                ("allocates", self.allocates[name]),
                ("does not allocate", self.refuses[name] + self.fails[name]),
            )
            if count < least
        ]


def features(question: Json, answer: Json) -> Iterator[str]:
    """The features of a case, each at least once."""
    given = answer.get("allocations")
    if given is None:
        yield from _in_devices(visible_devices(question))
        yield from _in_requests(question)
    else:
        yield from _in_results(question, [result for one in given for result in one["devices"].get("results", ())])
        yield from {"taints"}.intersection(_in_devices(visible_devices(question)))
    yield from _in_pools(question)
    yield from _in_question(question)
    yield from _in_claims(question)


def visible_devices(question: Json) -> Iterator[Json]:
    for piece in question["slices"]:
        if piece["spec"].get("nodeName", question["node"]["metadata"]["name"]) == question["node"]["metadata"]["name"]:
            yield from piece["spec"].get("devices", ())


def _in_devices(devices: Iterator[Json]) -> Iterator[str]:
    for device in devices:
        yield from _of_device(device)
        if device.get("allowMultipleAllocations"):
            yield from _of_capacity(device)


def _of_device(device: Json) -> Iterator[str]:
    if device.get("consumesCounters"):
        yield "counters"
    if device.get("bindingConditions"):
        yield "binding conditions"
    if any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in device.get("taints", ())):
        yield "taints"


def _of_capacity(device: Json) -> Iterator[str]:
    for entry in device.get("capacity", {}).values():
        yield f"capacity {policy_kind(entry.get('requestPolicy'))}"


def policy_kind(policy: Json | None) -> str:
    if policy is None:
        return "none"
    if "validValues" in policy:
        return "validValues"
    if "validRange" not in policy:
        return "default"
    return "validRange+step" if "step" in policy["validRange"] else "validRange"


def _in_results(question: Json, results: list[Json]) -> Iterator[str]:
    by_id = {
        (piece["spec"]["driver"], piece["spec"]["pool"]["name"], device["name"]): device
        for piece in question["slices"]
        for device in piece["spec"].get("devices", ())
    }
    for result in results:
        device = by_id[result["driver"], result["pool"], result["device"]]
        yield from ("tolerations" if name == "taints" else name for name in _of_device(device))
        if "shareID" in result:
            yield from _of_capacity(device)
        if result.get("adminAccess"):
            yield "admin access"
        if "/" in result["request"]:
            yield "firstAvailable"


def _in_requests(question: Json) -> Iterator[str]:
    for request in requests(question):
        if request.get("adminAccess"):
            yield "admin access"
        if request.get("tolerations"):
            yield "tolerations"
    if any("firstAvailable" in request for claim in question["claims"] for request in _requests_of(claim)):
        yield "firstAvailable"


def _requests_of(claim: Json) -> list[Json]:
    asked: list[Json] = claim["spec"]["devices"]["requests"]
    return asked


def requests(question: Json) -> Iterator[Json]:
    """Every request and every alternative."""
    for claim in question["claims"]:
        for request in _requests_of(claim):
            yield from [request["exactly"]] if "exactly" in request else request["firstAvailable"]


def _in_pools(question: Json) -> Iterator[str]:
    counts: Counter[tuple[str, str, int]] = Counter()
    stated: dict[tuple[str, str, int], int] = {}
    for piece in question["slices"]:
        spec = piece["spec"]
        key = (spec["driver"], spec["pool"]["name"], spec["pool"]["generation"])
        counts[key] += 1
        stated[key] = spec["pool"]["resourceSliceCount"]
        names = [device["name"] for device in spec.get("devices", ())]
        sets = [entry["name"] for entry in spec.get("sharedCounters", ())]
        if len(names) > len(set(names)) or len(sets) > len(set(sets)) or _unknown_counters(spec):
            yield "invalid pool"
        if "nodeSelector" in spec:
            yield "node selectors"
        if spec.get("perDeviceNodeSelection"):
            yield "per-device nodes"
    if any(counts[key] != stated[key] for key in counts):
        yield "incomplete pool"


def _unknown_counters(spec: Json) -> bool:
    drawn = [entry for device in spec.get("devices", ()) for entry in device.get("consumesCounters", ())]
    return any(entry["counterSet"] == "card-9" or "copies" in entry["counters"] for entry in drawn)


def _in_question(question: Json) -> Iterator[str]:
    if len(question["claims"]) > 1:
        yield "several claims"
    if question.get("taintRules"):
        yield "taint rules"
    if question.get("features"):
        yield "other gates"
    held = [claim["status"]["allocation"]["devices"]["results"] for claim in question.get("allocatedClaims", ())]
    if any("shareID" in result for results in held for result in results):
        yield "shared devices in use"


def _in_claims(question: Json) -> Iterator[str]:
    careless = {selector["cel"]["expression"] for c in question["classes"] for selector in _careless(c["spec"])}
    for request in requests(question):
        if request.get("allocationMode") == "All":
            yield "All"
        if (request["deviceClassName"] == "careless" and careless) or list(_careless(request)):
            yield "selectors that may fail"
    for claim in question["claims"]:
        wanted = claim["spec"]["devices"]
        yield from (kind for entry in wanted.get("constraints", ()) for kind in entry if kind != "requests")
        if wanted.get("config") and any(entry["spec"].get("config") for entry in question["classes"]):
            yield "class and claim configuration"


def _careless(holder: Json) -> Iterator[Json]:
    for selector in holder.get("selectors", ()):
        if selector["cel"]["expression"] in random_claims.CARELESS:
            yield selector
