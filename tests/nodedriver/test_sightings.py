"""Whose a process is, when it was last seen, and which of that is worth telling: by tables, then by real files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dra.names import ClaimUID
from nodedriver.facts import GpuProcess, MigPlacement, PciAddress
from nodedriver.gpuconfig import MpsLimits
from nodedriver.holding import Checkpoint, ClaimState, PreparedClaim, PreparedDevice
from nodedriver.lastseen import LastSeen
from nodedriver.marks import mark, marked_with
from nodedriver.ports import GpuError
from nodedriver.sightings import Look, Sight, look_at, looked, told_time

CARD, OTHER = PciAddress("0000:17:00.0"), PciAddress("0000:2a:00.0")
LEFT, RIGHT = MigPlacement(9, 0, 4), MigPlacement(9, 4, 4)
A, B = (ClaimUID(f"{letter * 8}-0000-4000-8000-000000000000") for letter in "ab")
AT_8, AT_9 = "2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z"
HALF = MpsLimits(thread_percentage=50, memory_limit=2**30)


def held(
    uid: ClaimUID,
    *,
    gpu: PciAddress = CARD,
    placement: MigPlacement | None = None,
    mps: MpsLimits | None = None,
    admin_access: bool = False,
) -> PreparedClaim:
    device = PreparedDevice(
        device_request="gpu", pool="n", device="gpu-0", gpu=gpu, placement=placement, mps=mps,
        admin_access=admin_access, cdi_device_id=f"cdi-{uid[0]}",
    )  # fmt: skip
    return PreparedClaim(namespace="t", name=f"c-{uid[0]}", uid=uid, state=ClaimState.COMPLETED, devices=(device,))


def on(placement: MigPlacement | None = None, *, pid: int = 1, client: bool = False) -> GpuProcess:
    return GpuProcess(pid, placement, client)


# Claims, processes of CARD, the claims that processes are marked with, and which claims are occupied.
OCCUPIED: dict[str, tuple[Sequence[PreparedClaim], Sequence[GpuProcess], dict[int, set[ClaimUID]], str]] = {
    "nobody": ([held(A)], [], {}, ""),
    "the only holder, without a mark": ([held(A)], [on()], {}, "a"),
    "its own mark": ([held(A)], [on()], {1: {A}}, "a"),
    "a mark of a claim that is gone": ([held(A)], [on()], {1: {B}}, ""),
    "one of two holders": ([held(A), held(B)], [on()], {1: {B}}, "b"),
    "unmarked beside two holders": ([held(A), held(B)], [on()], {}, "ab"),
    "a process of each": ([held(A), held(B)], [on(pid=1), on(pid=2)], {1: {A}, 2: {B}}, "ab"),
    "on an instance": ([held(A, placement=LEFT), held(B, placement=RIGHT)], [on(LEFT)], {}, "a"),
    "on the card outside of instances": ([held(A, placement=LEFT)], [on()], {}, ""),
    "an MPS server alone": ([held(A, mps=HALF)], [on()], {}, ""),
    "an MPS client": ([held(A, mps=HALF), held(B, mps=HALF)], [on(), on(pid=2, client=True)], {2: {A}}, "a"),
    "on another card": ([held(A, gpu=OTHER)], [on()], {}, ""),
    "admin access": ([held(A, admin_access=True)], [on()], {}, ""),
}


@pytest.mark.parametrize(("claims", "processes", "marks", "occupied"), OCCUPIED.values(), ids=OCCUPIED)
def test_whose_a_process_is(
    claims: Sequence[PreparedClaim], processes: Sequence[GpuProcess], marks: dict[int, set[ClaimUID]], occupied: str
) -> None:
    look = look_at(claims, {CARD: processes}, lambda pid: frozenset(marks.get(pid, ())))
    assert sorted(uid[0] for uid, _ in look.occupied) == sorted(occupied)


def test_a_look_changes_what_it_saw_and_keeps_what_did_not_answer() -> None:
    a, b, c = ((uid, "cdi") for uid in (A, B, ClaimUID("c")))
    before = {a: Sight(AT_8, running=True), b: Sight(AT_8, running=True), c: Sight(AT_8, running=True)}
    after = looked(before, Look(answered=frozenset({a, b}), occupied=frozenset({b})), AT_9)
    assert after == {a: Sight(AT_8, running=False), b: Sight(AT_9, running=True), c: Sight(AT_8, running=True)}


@pytest.mark.parametrize(
    ("told", "sight", "wanted"),
    [
        (None, None, None),
        (AT_8, None, AT_8),  # a driver that has just started
        (None, Sight(AT_9, running=True), AT_9),
        (AT_8, Sight("2026-01-01T08:14:59Z", running=True), AT_8),
        (AT_8, Sight("2026-01-01T08:15:00Z", running=True), "2026-01-01T08:15:00Z"),
        (AT_8, Sight("2026-01-01T08:01:00Z", running=False), "2026-01-01T08:01:00Z"),
        ("yesterday", Sight(AT_9, running=True), AT_9),
    ],
)
def test_which_time_is_worth_a_write(told: str | None, sight: Sight | None, wanted: str | None) -> None:
    assert told_time(told, sight) == wanted


def test_a_mark_is_read_back_among_other_variables() -> None:
    environment = f"PATH=/bin\0{mark(A)}\0PORTICO_OTHER=1\0{mark(B)}\0".encode()
    assert marked_with(environment) == {A, B}
    assert marked_with(b"") == frozenset()


class Node:
    """A /proc with one process in it, and cards that answer or not."""

    def __init__(self, proc: Path, claims: Sequence[PreparedClaim]) -> None:
        self.proc = proc
        self.silent = False
        checkpoint = Checkpoint(boot_id="b", claims={claim.uid: claim for claim in claims})
        self.seen = LastSeen(proc, lambda: checkpoint, self._processes)

    def _processes(self, _gpu: PciAddress) -> Sequence[GpuProcess]:
        if self.silent:
            raise GpuError("the card does not answer")
        return [on(pid=int(folder.name)) for folder in self.proc.iterdir()]

    def enters(self, pid: int, *entries: str) -> None:
        (self.proc / str(pid)).mkdir()
        (self.proc / str(pid) / "environ").write_bytes("\0".join(entries).encode())


def test_a_card_that_does_not_answer_makes_nobody_idle(tmp_path: Path) -> None:
    node = Node(tmp_path, [held(A), held(B)])
    node.enters(7, mark(A))
    node.seen.look()
    first = node.seen.of(A, "cdi-a")
    assert first is not None
    assert first.running
    assert node.seen.of(B, "cdi-b") is None
    node.silent = True
    node.seen.look()
    assert node.seen.of(A, "cdi-a") == first


def test_an_environment_that_can_not_be_read_counts_for_everybody(tmp_path: Path) -> None:
    node = Node(tmp_path, [held(A), held(B)])
    (tmp_path / "7").mkdir()
    node.seen.look()
    found: list[Callable[[], Sight | None]] = [lambda: node.seen.of(A, "cdi-a"), lambda: node.seen.of(B, "cdi-b")]
    assert [bool(each()) for each in found] == [True, True]


def test_the_environment_of_a_real_process_is_read() -> None:
    seen = LastSeen(
        Path("/proc"), lambda: Checkpoint(boot_id="b", claims={A: held(A)}), lambda _: [on(pid=os.getpid())]
    )
    seen.look()
    assert seen.of(A, "cdi-a") is not None
