"""Random walks over the driver's verbs: prepare, unprepare, death, restart, reboot, faults, errors of cards.

After every step the invariants hold: no card in two modes, no share sum over 100, limits within the card, no MPS daemon
without a claim, no instance without a claim or an administrator, the checkpoint is the hardware, and what the status
says of who enforces a share is true. FULL=1 walks far longer.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nodedriver.facts import MigPlacement
from nodedriver.holding import ClaimState, PreparedDevice
from nodedriver.ports import GpuError
from simulator.silicon.hardware import ComputeMode, Gpu, MpsDaemon
from tests.nodedriver import apiserver
from tests.nodedriver.machine import short_folder
from tests.nodedriver.walks import CARDS, DEATH, PLACES, WISHES, Walk, Wish, devices_on, placements, prepared_well, told

pytestmark = pytest.mark.programs

FULL = bool(os.environ.get("PORTICO_FULL"))
# What may fail: by name in NVML; "" is the MPS supervisor.
FALLIBLE = (
    "", "nvmlDeviceSetMigMode", "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance",
    "nvmlGpuInstanceDestroy", "nvmlComputeInstanceDestroy", "nvmlDeviceSetComputeMode", "nvmlDeviceGetGpuInstances",
    "nvmlDeviceGetHandleByPciBusId_v2",
)  # fmt: skip
BY_HAND = (MigPlacement(9, 0, 4), MigPlacement(19, 0, 1), MigPlacement(14, 2, 2))

places, cards = st.sampled_from(PLACES), st.integers(0, CARDS - 1)
wishes, boundaries = st.sampled_from(WISHES), st.integers(1, 10)


class Walks(RuleBasedStateMachine):
    """One node from its first claim on."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(short_folder())
        store = self.stack.enter_context(apiserver.serve(folder / "kubeconfig"))
        self.walk = Walk(folder, store)

    def teardown(self) -> None:
        self.walk.machine.close()
        self.stack.close()

    @rule(place=places, card=cards, wish=wishes)
    def prepare(self, place: int, card: int, wish: Wish) -> None:
        ref = self.walk.allocate(place, card, wish)
        held = ref.uid in self.walk.entries()
        result = self.walk.prepare(ref)
        assert prepared_well(result) or (not held and self.walk.may_be_refused(ref)), result
        if not prepared_well(result):
            self.walk.forget(place)
            self.walk.gone.pop()

    @precondition(lambda self: self.walk.shared() and self.walk.free())
    @rule(data=st.data(), percent=st.sampled_from((10, 25, 40)))
    def prepare_beside(self, data: st.DataObject, percent: int) -> None:
        """One more share of something that is shared."""
        card, wish = data.draw(st.sampled_from(self.walk.shared()))
        self.prepare(self.walk.free()[0], card, replace(wish, share=percent, config=()))

    @rule(place=places, card=cards, wish=wishes, number=boundaries)
    def die_in_prepare(self, place: int, card: int, wish: Wish, number: int) -> None:
        ref = self.walk.allocate(place, card, wish)
        DEATH.boundaries_left = number
        self.walk.prepare(ref)

    @rule(place=places, card=cards, wish=wishes, function=st.sampled_from(FALLIBLE), skip=st.integers(0, 3))
    def fail_in_prepare(self, place: int, card: int, wish: Wish, function: str, skip: int) -> None:
        ref = self.walk.allocate(place, card, wish)
        self.walk.fault(function, skip)
        self.walk.prepare(ref)

    @precondition(lambda self: self.walk.claims)
    @rule(data=st.data())
    def unprepare(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(sorted(self.walk.claims)))
        assert self.walk.unprepare(self.walk.claims[place]) == ""
        assert self.walk.claims[place].uid not in self.walk.entries()
        self.walk.forget(place)
        self.walk.gone.pop()

    @precondition(lambda self: self.walk.claims)
    @rule(data=st.data(), number=boundaries)
    def die_in_unprepare(self, data: st.DataObject, number: int) -> None:
        place = data.draw(st.sampled_from(sorted(self.walk.claims)))
        DEATH.boundaries_left = number
        self.walk.unprepare(self.walk.claims[place])

    @precondition(lambda self: self.walk.claims)
    @rule(data=st.data(), function=st.sampled_from(FALLIBLE), skip=st.integers(0, 3))
    def fail_in_unprepare(self, data: st.DataObject, function: str, skip: int) -> None:
        place = data.draw(st.sampled_from(sorted(self.walk.claims)))
        self.walk.fault(function, skip)
        self.walk.unprepare(self.walk.claims[place])

    @precondition(lambda self: self.walk.claims)
    @rule(data=st.data())
    def delete_with_force(self, data: st.DataObject) -> None:
        """Its name may be another claim's with the next step. The kubelet unprepares it late, or never."""
        self.walk.forget(data.draw(st.sampled_from(sorted(self.walk.claims))))

    @precondition(lambda self: self.walk.gone)
    @rule()
    def unprepare_late(self) -> None:
        assert self.walk.unprepare(self.walk.gone.pop()) == ""

    @rule()
    def restart(self) -> None:
        self.walk.start_anew()

    @rule()
    def look_twice(self) -> None:
        """What was deleted with force is taken back, what was lost is made again."""
        self.walk.machine.reconciler.look()
        self.walk.machine.reconciler.look()
        assert not {ref.uid for ref in self.walk.gone} & self.walk.entries().keys()
        self.walk.gone.clear()

    @precondition(lambda self: self.walk.whole())
    @rule(data=st.data())
    def lose_a_cdi_file(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(self.walk.whole()))
        (path,) = self.walk.machine.cdi_dir.glob(f"*{self.walk.claims[place].uid}*")
        before = path.read_text()
        path.unlink()
        self.walk.machine.reconciler.look()
        assert path.read_text() == before

    @precondition(lambda self: len(self.walk.settled()) == len(self.walk.entries()))
    @rule()
    def lose_the_checkpoint(self) -> None:
        """It is made anew from the CDI files."""
        before = self.walk.entries().keys()
        (self.walk.machine.plugin_dir / "checkpoint.json").unlink()
        self.walk.start_anew()
        assert self.walk.entries().keys() == before

    @rule()
    def reboot(self) -> None:
        self.walk.reboot()
        assert {claim.state for claim in self.walk.entries().values()} <= {ClaimState.STARTED}

    @rule(card=cards, placement=st.sampled_from(BY_HAND))
    def make_an_instance_by_hand(self, card: int, placement: MigPlacement) -> None:
        gpu = self.walk.silicon().gpus[card]
        started = [claim for claim in self.walk.entries().values() if claim not in self.walk.settled()]
        if not gpu.mig_current or devices_on(gpu, started) or (card, placement) in self.walk.by_hand:
            return
        try:
            self.walk.machine.gpus.create_mig(self.walk.cards[card], placement)
        except GpuError:
            return
        if placement not in {device.placement for device in devices_on(gpu, self.walk.settled())}:
            self.walk.by_hand.add((card, placement))

    @precondition(lambda self: self.walk.by_hand)
    @rule(data=st.data())
    def remove_an_instance_by_hand(self, data: st.DataObject) -> None:
        made = data.draw(st.sampled_from(sorted(self.walk.by_hand)))
        self.walk.machine.gpus.remove_mig(self.walk.cards[made[0]], made[1])
        self.walk.by_hand.discard(made)

    @rule(card=cards)
    def a_card_breaks(self, card: int) -> None:
        self.walk.break_card(card)

    @precondition(lambda self: self.walk.ailing and not self.walk.entries())
    @rule()
    def a_card_is_reset(self) -> None:
        self.walk.reset_card(min(self.walk.ailing))

    @invariant()
    def no_card_is_in_two_modes(self) -> None:
        for gpu in self.walk.silicon().gpus:
            wanted = {device.placement is not None for device in devices_on(gpu, self.walk.settled())}
            assert wanted in (set(), {gpu.mig_current})
            assert gpu.mig_current or not gpu.gpu_instances

    @invariant()
    def no_share_sum_is_over_a_hundred(self) -> None:
        sums: dict[object, Fraction] = {}
        for claim in self.walk.entries().values():
            for device in claim.devices:
                sums[device.place] = sums.get(device.place, Fraction()) + device.percent
        assert all(total <= 100 for total in sums.values()), sums

    @invariant()
    def limits_are_within_the_card(self) -> None:
        for gpu in self.walk.silicon().gpus:
            sums: dict[object, int] = {}
            for device in devices_on(gpu, self.walk.settled()):
                asked = (device.mps.memory_limit or 0) if device.mps else 0
                sums[device.place] = sums.get(device.place, 0) + asked
                assert sums[device.place] <= _memory(gpu, device.placement)

    @invariant()
    def each_daemon_has_a_claim_and_each_claim_its_daemon(self) -> None:
        running = [daemon.devices[0] for daemon in self.walk.silicon().mps_daemons]
        every = {d.uuid for claim in self.walk.entries().values() for d in claim.devices if d.mps}
        settled = {d.uuid for claim in self.walk.settled() for d in claim.devices if d.mps}
        assert len(running) == len(set(running))
        assert settled <= set(running) <= every

    @invariant()
    def each_instance_has_a_claim_or_an_administrator(self) -> None:
        for card, gpu in enumerate(self.walk.silicon().gpus):
            by_hand = {placement for where, placement in self.walk.by_hand if where == card}
            every = {d.placement for d in devices_on(gpu, [*self.walk.entries().values()]) if d.placement}
            settled = {d.placement for d in devices_on(gpu, self.walk.settled()) if d.placement}
            assert settled | by_hand <= placements(gpu) <= every | by_hand

    @invariant()
    def the_checkpoint_is_the_hardware(self) -> None:
        for gpu in self.walk.silicon().gpus:
            uuids = {ci.uuid for gi in gpu.gpu_instances for ci in gi.compute_instances} | {gpu.uuid}
            held = devices_on(gpu, self.walk.settled())
            assert {device.uuid for device in held} <= uuids
            if any(device.exclusive_process for device in held):
                assert gpu.compute_mode is ComputeMode.EXCLUSIVE_PROCESS
            if not devices_on(gpu, [*self.walk.entries().values()]):
                assert (gpu.compute_mode, gpu.timeslice) == (ComputeMode.DEFAULT, 0)
            assert all(gpu.timeslice == 3 for device in held if device.interval)
        files = {path.name for path in self.walk.machine.cdi_dir.glob("*.json")}
        assert all(any(claim.uid in name for name in files) for claim in self.walk.settled())
        assert all(any(uid in name for uid in self.walk.entries()) for name in files)

    @invariant()
    def who_enforces_is_true(self) -> None:
        daemons = {daemon.devices[0]: daemon for daemon in self.walk.silicon().mps_daemons}
        unsure = {d.place for c in self.walk.entries().values() for d in c.devices if c not in self.walk.settled()}
        for claim in self.walk.settled():
            for device, said in zip(claim.devices, told(claim, self.walk), strict=True):
                if device.place not in unsure:
                    assert said["enforcedBy"] == _truth(device, daemons.get(device.uuid))

    @invariant()
    def what_ails_a_card_taints_it(self) -> None:
        tainted = {card for card, gpu in enumerate(self.walk.cards) if self.walk.health.taints(gpu, None)}
        assert tainted == self.walk.ailing


def _memory(gpu: Gpu, placement: MigPlacement | None) -> int:
    """Of the card, or of the instance there."""
    mib = next(
        (each.memory_mib for each in gpu.gpu_instances if placement and each.start == placement.start),
        gpu.total_memory_mib,
    )
    return mib * 2**20


def _truth(device: PreparedDevice, daemon: MpsDaemon | None) -> str:
    """Who holds a client of this share to its limits, by what its daemon has, which is never less than was promised."""
    if device.mps is None:
        return "None"
    assert daemon is not None
    unlimited = 2.0**63
    has = daemon.default_active_thread_percentage, daemon.default_memory_limits.get(device.uuid) or unlimited
    wants = float(device.mps.thread_percentage or 100), device.mps.memory_limit or unlimited
    assert has[0] >= wants[0]
    assert has[1] >= wants[1]
    if device.mps.thread_percentage is None and device.mps.memory_limit is None:
        return "None"
    return "Server" if has == wants else "ClientEnvironment"


TestWalks = Walks.TestCase
TestWalks.settings = settings(
    max_examples=300 if FULL else 10,
    stateful_step_count=40,
    deadline=None,
    phases=[phase for phase in Phase if FULL or phase not in (Phase.shrink, Phase.explain)],  # they take minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
