"""The request form's preview on 1,000 nodes of 224 devices with 5,000 claims, through the real view and its middleware.

Django's test client asks, signed in, each time for a wish that nobody asked before; the read model is SQLite on disk.
The floor of the same run is the sum of three: a signed-in view that answers nothing, the engine's answer to another new
wish of the same kind, and the same templates rendered from the values that the view had gathered. What the engine says
to a wish that does not fit is why it does not: there its explanation belongs to the answer.
"""

from __future__ import annotations

import gzip
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from benchmarks import machines
from benchmarks.readmodel import put, stamped, use_database
from benchmarks.report import Report
from benchmarks.weight import weight_of
from dra.objects import OwnerReference, ResourceClaim, encode

NODES = int(os.environ.get("PORTICO_BENCH_NODES", "1000"))
CLAIMS = 5 * NODES
ROUNDS = int(os.environ.get("PORTICO_BENCH_ROUNDS", "40"))
FLOOR = ("empty view", "answer", "templates")
RATIO, FIRST_KB, NEXT_KB = 2.5, 120.0, 15.0
NAMESPACE, KEY = "ml-team", "0123456789abcdef"
TOGETHER = 20  # nodes
WHOLE_CARDS = "gpu.nvidia-h100-80gb-hbm3"  # the class that the portal derives for them from the one DeviceClass
_PART = {"HX-Request": "true", "HX-Request-Type": "partial", "Accept-Encoding": "gzip"}


def run(report: Report) -> None:
    """Print the ratio for wishes that fit and for such that will not, and what goes over the wire."""
    with tempfile.TemporaryDirectory() as folder:
        use_database(Path(folder) / "read-model.sqlite3", urlconf="benchmarks.nothing")
        _fill()
        desk = Desk()
        took = seconds(lambda: desk.ask(memory="1Gi"))
        report.value("the first preview of a process, which reads the fleet", took, "s")
        _compare(report, "fits", desk, (f"{512 * n}Mi" for n in itertools.count(2)), FLOOR)
        too_much = (f"{n}Gi" for n in itertools.count(90))
        _compare(report, "does not fit", desk, too_much, (*FLOOR, "explanation"))
        _weigh(report, desk)


class Desk:
    """A signed-in person at the form."""

    def __init__(self) -> None:
        from django.test import Client  # noqa: PLC0415 - only once Django is set up

        from portal.models import User  # noqa: PLC0415 - only once Django is set up

        self.client, self.person = Client(), User.objects.get()
        self.client.force_login(self.person)

    def ask(self, *, memory: str, whole: bool = False) -> Any:
        """The answer to the form's own request, or the whole page."""
        headers = {"Accept-Encoding": "gzip"} if whole else _PART
        answer = self.client.get(f"/request/?form={KEY}&{query_of(memory)}", headers=headers)
        if answer.status_code != 200:
            raise AssertionError(f"the form answered {answer.status_code}: {answer.content[:500]!r}")
        return answer

    def nothing(self) -> None:
        """An answer of a view that does nothing."""
        self.client.get("/nothing/", headers=_PART)


def query_of(memory: str) -> str:
    """A whole device of the class with at least that much memory."""
    return urlencode({"ns": NAMESPACE, "name": "trainer", "class": WHOLE_CARDS, "memory": memory})


def seconds(call: Callable[[], Any]) -> float:
    """How long the call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _compare(report: Report, words: str, desk: Desk, amounts: Iterator[str], floor: tuple[str, ...]) -> None:
    """Each round asks for a new wish, and measures the parts of the floor beside it."""
    times: dict[str, list[float]] = {part: [] for part in ("preview", *FLOOR, "explanation")}
    for _ in range(ROUNDS):
        with _kept_rendering() as rendering:
            times["preview"].append(seconds(lambda: desk.ask(memory=next(amounts))))
        times["templates"].append(seconds(rendering[0]))
        times["empty view"].append(seconds(desk.nothing))
        answer, explanation = _engine(desk, next(amounts))
        times["answer"].append(answer)
        times["explanation"].append(explanation)
    medians = {part: statistics.median(each) for part, each in times.items()}
    ratio = medians["preview"] / sum(medians[part] for part in floor)
    report.ratio(f"preview of a wish that {words} to the sum of its parts", ratio, budget=RATIO)
    for part, took in medians.items():
        report.value(f"{part}, a wish that {words}", took * 1e3, "ms")


@contextmanager
def _kept_rendering() -> Iterator[list[Callable[[], Any]]]:
    """Keep the view's own call that renders, with all values gathered, to be made once more."""
    from claims.views import formpage  # noqa: PLC0415 - only once Django is set up

    kept: list[Callable[[], Any]] = []
    render = vars(formpage)["page_or_part"]

    def keep(*arguments: Any, **options: Any) -> Any:
        kept.append(lambda: render(*arguments, **options))
        return render(*arguments, **options)

    vars(formpage)["page_or_part"] = keep
    try:
        yield kept
    finally:
        vars(formpage)["page_or_part"] = render


def _engine(desk: Desk, memory: str) -> tuple[float, float]:
    """Seconds of the engine's answer, by a fleet that has seen this snapshot, to a wish it has not, and of its
    explanation.
    """
    from claims.services.fit.claim import claim_of  # noqa: PLC0415 - only once Django is set up
    from claims.services.fit.pod import needs_of  # noqa: PLC0415 - only once Django is set up
    from claims.services.preview import preview  # noqa: PLC0415 - only once Django is set up
    from dra.advice.fleetwide import explain_fleet  # noqa: PLC0415 - only once Django is set up
    from dra.fleet import Wish  # noqa: PLC0415 - only once Django is set up

    seen = preview(user=desk.person, query=query_of(memory), key=KEY)
    if seen.files is None:
        raise AssertionError(f"no files: {seen.refusals}")
    now = seen.fleet
    wish = Wish(resource_claims=(claim_of(seen.files),), pod=needs_of(seen.files, now.snapshot))
    answered = seconds(lambda: now.fleet.answer(now.snapshot, wish, now.usage))
    return answered, seconds(lambda: explain_fleet(now.snapshot, wish.resource_claims))


def _weigh(report: Report, desk: Desk) -> None:
    """Bytes over the wire: the page with all it loads, then one answer to the form."""
    for words, memory in (("fits", "20Gi"), ("does not fit", "100Gi")):
        first = desk.ask(memory=memory, whole=True).content
        total = weight_of(gzip.decompress(first), len(first)).total
        report.value(f"first load with a wish that {words}", total / 1e3, "kB", budget=FIRST_KB)
        after = len(desk.ask(memory=memory).content)
        report.value(f"each answer after, a wish that {words}", after / 1e3, "kB", budget=NEXT_KB)


def _fill() -> None:
    """The fleet, who may ask, and what is held: some hold, some wait with a pod, some without."""
    from django.utils import timezone  # noqa: PLC0415 - only once Django is set up

    from gpuinventory.kinds import KINDS  # noqa: PLC0415 - only once Django is set up
    from gpuinventory.models import StreamCursor  # noqa: PLC0415 - only once Django is set up
    from portal.models import User  # noqa: PLC0415 - only once Django is set up
    from portal.services.add_team import add_team  # noqa: PLC0415 - only once Django is set up
    from portal.services.join_team import join_team  # noqa: PLC0415 - only once Django is set up

    join_team(user=User.objects.create_user("alice"), team=add_team(name=NAMESPACE, namespaces=[NAMESPACE]))
    put("DeviceClass", [stamped(encode(machines.device_class()), 1)])
    for names in itertools.batched(machines.names(NODES), TOGETHER):
        put("Node", [stamped(encode(machines.node(name)), 1) for name in names])
        put("ResourceSlice", [stamped(body, 1) for name in names for body in machines.bodies_of(name)])
    held = list(machines.held_by_all(machines.names(NODES)))
    waiting = [_waiting(number) for number in range(CLAIMS - len(held))]
    for claims in itertools.batched((*held, *waiting), 200):
        put("ResourceClaim", [stamped(encode(each), 1) for each in claims])
    for kind in KINDS:
        StreamCursor.objects.create(kind=kind, resource_version="1", synced_at=timezone.now())


def _waiting(number: int) -> ResourceClaim:
    """A claim without a device; every other one has a pod that waits for it."""
    found = machines.claim(f"waiting-{number}")
    pod = OwnerReference(api_version="v1", kind="Pod", name=f"pod-{number}", uid=f"uid-{number}", controller=True)
    owners = (pod,) if number % 2 else ()
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, owner_references=owners))
