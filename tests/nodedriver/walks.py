"""A node on which claims come and go at random, the driver dies and NVML fails, and what must hold of it all the same.

`Walk` drives the production verbs; the claims, what an administrator made and what ails a card are kept beside, so that
the hardware, the checkpoint and the driver's answers are measured against something that the driver did not say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from uuid import uuid4

from dra.names import ClaimRef, ClaimUID
from dra.objects import DeviceAllocationConfiguration, DeviceRequestAllocationResult, JsonObject
from nodedriver.boundary import EVENT
from nodedriver.devicestatus import Around, statuses_of
from nodedriver.driver import Failed, Prepared, PrepareResult
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health.ailments import Policy
from nodedriver.health.monitor import Health, Monitor
from nodedriver.holding import ClaimState, PreparedClaim, PreparedDevice
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError, MpsReport, MpsReports
from simulator.silicon import rules
from simulator.silicon.hardware import ComputeMode, Gpu, Injection, MpsDaemon, Silicon
from simulator.silicon.state import State, start_time, with_gpu
from tests.nodedriver.apiserver import Store
from tests.nodedriver.claims import DRIVER, allocated, given, given_slots, mps, of_claim, of_class, time_slicing
from tests.nodedriver.machine import CLAIMS, Machine

CARDS = 2
PLACES = range(5)  # of claims that may be there at a time
HUNDRED = 100.0


class Died(BaseException):
    """The driver's process is gone, at a boundary between two deeds. No error: nothing in the driver may catch it."""


class Death:
    """Lets the driver die at a boundary of its choice. The hook stays in the process for good (PEP 578), and idles."""

    def __init__(self) -> None:
        self.boundaries_left = 0
        sys.addaudithook(self._look)

    def _look(self, event: str, _arguments: object) -> None:
        if event == EVENT and self.boundaries_left:
            self.boundaries_left -= 1
            if not self.boundaries_left:
                raise Died


DEATH = Death()


class QuickMps:
    """A supervisor whose daemons are entries of the silicon only, without processes. Fulfils `nodedriver.ports.Mps`.

    It keeps what a real one keeps for the driver: one daemon a device, with the limits asked for last. `away`: nobody
    answers at its socket.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.away = False

    def ensure(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        self._check()
        daemon = MpsDaemon(
            pid=os.getpid(),
            started=start_time(os.getpid()) or 0,
            pipe_directory=f"/mps/{spec.device}",
            multi_user=True,
            devices=(spec.device,),
            default_active_thread_percentage=float(spec.thread_percentage or 100),
            default_memory_limits={} if spec.memory_limit is None else {spec.device: spec.memory_limit},
        )
        self._replace(spec.device, (daemon,))
        return _status(daemon)

    def remove(self, device: str) -> None:
        self._check()
        self._replace(device, ())

    def end_clients(self, device: str, claim: ClaimUID) -> None:
        self._check()

    def watch(self, revision: int, seconds: float) -> MpsReports:
        self._check()
        return MpsReports(revision=revision, daemons=tuple(MpsReport(device=status.device) for status in self.list()))

    def list(self) -> tuple[MpsDaemonStatus, ...]:
        self._check()
        return tuple(_status(daemon) for daemon in self._state.read().mps_daemons)

    def _check(self) -> None:
        if self.away:
            raise MpsError("the MPS supervisor did not answer")

    def _replace(self, device: str, by: tuple[MpsDaemon, ...]) -> None:
        def step(silicon: Silicon) -> tuple[Silicon, None]:
            others = tuple(daemon for daemon in silicon.mps_daemons if daemon.devices != (device,))
            return replace(silicon, mps_daemons=(*others, *by)), None

        self._state.change(step)


def _status(daemon: MpsDaemon) -> MpsDaemonStatus:
    return MpsDaemonStatus(
        device=daemon.devices[0],
        pipe_directory=daemon.pipe_directory,
        thread_percentage=daemon.default_active_thread_percentage,
        memory_limit=daemon.default_memory_limits.get(daemon.devices[0]),
    )


@dataclass(frozen=True, slots=True)
class Wish:
    """What a claim is for, of one card: a device's name with `{}` for the card, and what it takes of which slices."""

    device: str
    share: int = 100
    slots: int = 0
    slices: tuple[int, int] | None = None  # first memory slice and their number; None: the whole card
    config: tuple[DeviceAllocationConfiguration, ...] = ()

    def result(self, card: int) -> DeviceRequestAllocationResult:
        name = self.device.format(card)
        return given_slots(name, self.slots) if self.slots else given(name, self.share)


def _mig(profile: str, start: int, size: int, share: int = 100) -> Wish:
    return Wish(f"gpu-{{}}-mig-{profile}-{start}", share, slices=(start, size))


# Any that do not overlap fit beside each other on an H100, so that only overlaps and sums refuse a claim.
WISHES = (
    Wish("gpu-{}"),
    Wish("gpu-{}", config=(of_class(mps()),)),
    Wish("gpu-{}", config=(of_class(mps(percentage=60)),)),
    *(Wish("gpu-{}", share) for share in (25, 25, 50, 75)),
    Wish("gpu-{}-timesliced", slots=3),
    Wish("gpu-{}-timesliced", slots=8),
    Wish("gpu-{}", config=(of_claim(time_slicing("Long")),)),
    _mig("1g10gb", 0, 1),
    _mig("2g20gb", 2, 2),
    _mig("3g40gb", 0, 4),
    _mig("3g40gb", 4, 4),
    *(_mig("3g40gb", 4, 4, share) for share in (30, 50, 60)),
    _mig("2g20gb", 2, 2, 40),
)


@dataclass(slots=True)
class Walk:
    """The node and what is known of it without asking the driver.

    `claims`: by place in the cluster, the claim that is there now. `unsettled`: claims whose last call did not end
    well, so that what they have is anybody's guess until the next one does.
    """

    folder: Path
    store: Store
    machine: Machine = field(init=False)
    mps: QuickMps = field(init=False)
    monitor: Monitor = field(init=False)
    health: Health = field(init=False)
    claims: dict[int, ClaimRef] = field(default_factory=dict)
    wishes: dict[ClaimUID, tuple[int, Wish]] = field(default_factory=dict)
    gone: list[ClaimRef] = field(default_factory=list)
    unsettled: set[ClaimUID] = field(default_factory=set)
    by_hand: set[tuple[int, MigPlacement]] = field(default_factory=set)
    ailing: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.machine = Machine(self.folder, self.store)
        self.machine.state.change(lambda silicon: (replace(silicon, gpus=silicon.gpus[:CARDS]), None))
        self.machine.mps = self.mps = QuickMps(self.machine.state)
        self.start_anew()

    def start_anew(self) -> None:
        """A fresh driver process, as far as it can be one here."""
        self.machine.driver = self.machine.make_driver()
        boot_id = (self.machine.tree.proc / "sys/kernel/random/boot_id").read_text().strip()
        self.health = Health(DRIVER, Policy(), self.machine.plugin_dir / "health.json", boot_id)
        events = self.machine.gpus.events(self.cards)
        self.monitor = Monitor(self.health, events, self.machine.gpus.look, lambda: None).watch(self.cards)

    @property
    def cards(self) -> list[PciAddress]:
        return [PciAddress(gpu.pci_address) for gpu in self.silicon().gpus]

    def silicon(self) -> Silicon:
        return self.machine.state.read()

    def entries(self) -> dict[ClaimUID, PreparedClaim]:
        return self.machine.prepared.read().claims

    def settled(self) -> list[PreparedClaim]:
        """The claims whose state is known: prepared, and the last call about them ended well."""
        return [
            claim
            for uid, claim in self.entries().items()
            if claim.state is ClaimState.COMPLETED and uid not in self.unsettled
        ]

    def whole(self) -> list[int]:
        """The places of claims that are there and whose state is known."""
        settled = {claim.uid for claim in self.settled()}
        return sorted(place for place, ref in self.claims.items() if ref.uid in settled)

    def shared(self) -> list[tuple[int, Wish]]:
        """The cards and wishes of claims that hold a part of something, with the state of all of it known."""
        return [self.wishes[self.claims[place].uid] for place in self.whole() if self._wish_of(place).share < 100]

    def free(self) -> list[int]:
        """The places without a claim."""
        return [place for place in PLACES if place not in self.claims]

    def _wish_of(self, place: int) -> Wish:
        return self.wishes[self.claims[place].uid][1]

    def allocate(self, place: int, card: int, wish: Wish) -> ClaimRef:
        """The claim at that place; a new one where there is none."""
        if place not in self.claims:
            uid = str(uuid4())
            claim = allocated(wish.result(card), config=wish.config, name=f"claim-{place}", uid=uid)
            self.claims[place] = self.machine.allocate(claim)
            self.wishes[ClaimUID(uid)] = card, wish
        return self.claims[place]

    def prepare(self, ref: ClaimRef) -> PrepareResult | None:
        """The answer; None when the driver died of it."""
        result = self._call(ref, lambda: self.machine.driver.prepare(ref))
        if isinstance(result, Failed) and ref.uid in self.entries():
            self.unsettled.add(ref.uid)
        return result

    def unprepare(self, ref: ClaimRef) -> str | None:
        """The error; None when the driver died of it."""
        error = self._call(ref, lambda: self.machine.driver.unprepare(ref))
        if error:
            self.unsettled.add(ref.uid)
        return error

    def _call[T](self, ref: ClaimRef, verb: Callable[[], T]) -> T | None:
        try:
            answer = verb()
        except Died:
            self.unsettled.add(ref.uid)
            self.start_anew()
            return None
        finally:
            DEATH.boundaries_left = 0
            self.mps.away = False
            self.machine.state.heal()
        self.unsettled.discard(ref.uid)
        return answer

    def fault(self, function: str, skip: int) -> None:
        """Let one of the next calls of that function of NVML fail; "" for the MPS supervisor being away."""
        if function:
            self.machine.state.inject(Injection(function=function, code=999, skip=skip))
        else:
            self.mps.away = True

    def reboot(self) -> None:
        """What a node loses: instances, modes, daemons, CDI files, and the boot id."""

        def step(silicon: Silicon) -> tuple[Silicon, None]:
            cards = tuple(
                replace(gpu, gpu_instances=(), mig_current=False, mig_pending=False, timeslice=0, recovery_action=0)
                for gpu in silicon.gpus
            )
            fresh = tuple(replace(gpu, compute_mode=ComputeMode.DEFAULT) for gpu in cards)
            return replace(silicon, gpus=fresh, mps_daemons=()), None

        self.machine.state.change(step)
        for path in self.machine.cdi_dir.glob("*"):
            path.unlink()
        (self.machine.tree.proc / "sys/kernel/random/boot_id").write_text(f"{uuid4()}\n")
        self.by_hand.clear()
        self.ailing.clear()
        self.start_anew()

    def break_card(self, card: int) -> None:
        """A double-bit error: the card asks for a reset."""
        self.machine.state.happen(self.cards[card], xid=48, recovery_action=1)
        self.monitor._hear()
        self.ailing.add(card)

    def reset_card(self, card: int) -> None:
        """An administrator resets a card that nobody uses."""
        self.machine.state.change(lambda s: (with_gpu(s, rules.reset(s.gpus[card])), None))
        self.by_hand = {made for made in self.by_hand if made[0] != card}
        self.monitor.look_around()
        self.ailing.discard(card)

    def forget(self, place: int) -> None:
        """Delete the claim with force; the kubelet has not unprepared it."""
        ref = self.claims.pop(place)
        del self.store.objects[f"{CLAIMS}/{ref.name}"]
        self.gone.append(ref)

    def may_be_refused(self, ref: ClaimRef) -> bool:
        """Whether something is in the way of that claim, by the wishes of those that hold and not by the driver."""
        card, wish = self.wishes[ref.uid]
        made = [placement for where, placement in self.by_hand if where == card]
        if any(_overlap(wish.slices, (each.start, each.size)) for each in made):
            return True
        taken = Fraction(wish.slots, 10) if wish.slots else Fraction(wish.share, 100)
        for uid in self.entries().keys() - {ref.uid}:
            where, other = self.wishes[uid]
            if where != card:
                continue
            if (other.device, bool(other.slots)) == (wish.device, bool(wish.slots)):
                taken += Fraction(other.slots, 10) if other.slots else Fraction(other.share, 100)
            elif _overlap(wish.slices, other.slices):
                return True
        return taken > 1


def _overlap(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    if one is None or other is None:
        return True
    return one[0] < sum(other) and other[0] < sum(one)


def told(claim: PreparedClaim, walk: Walk) -> list[JsonObject]:
    """What the claim's status says of its devices."""
    around = Around(
        driver_name=DRIVER,
        checkpoint=walk.machine.prepared.read(),
        ailing=lambda _gpu, _placement: (),
        seen=lambda _uid, _device: None,
        protocol=lambda _uuid: 2,
        now="2026-01-01T00:00:00Z",
    )
    return [status.data or {} for status in statuses_of(claim, (), around)]


def placements(gpu: Gpu) -> set[MigPlacement]:
    return {MigPlacement(each.profile_id, each.start, each.size) for each in gpu.gpu_instances}


def prepared_well(result: PrepareResult | None) -> bool:
    return isinstance(result, Prepared)


def devices_on(gpu: Gpu, claims: list[PreparedClaim]) -> list[PreparedDevice]:
    return [device for claim in claims for device in claim.devices if device.gpu == gpu.pci_address]
