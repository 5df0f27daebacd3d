"""The door to NVML through the real pynvml, on stand-in cards: facts, making and removing instances, refusals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodedriver.facts import ComputeMode, GpuFacts, MigModeChange, MigPlacement, PciAddress
from nodedriver.nvml import Nvml, NvmlError
from nodedriver.ports import GpuError
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import Injection, Process, ProcessKind
from simulator.silicon.state import State, start_time
from simulator.silicon.tree import Tree

THREE_AT_4 = MigPlacement(profile_id=9, start=4, size=4)
ONE_AT_0 = MigPlacement(profile_id=19, start=0, size=1)


class Bench:
    """A stand-in machine and the driver's door to it."""

    def __init__(self, tree: Tree) -> None:
        self.state = State(tree.state)
        silicon_nvml.install(tree.state)
        self.gpus = Nvml(library=None, sys_root=tree.sys)
        self.first = PciAddress(self.state.read().gpus[0].pci_address)

    def facts(self) -> GpuFacts:
        return self.gpus.facts()[0]

    def instances(self) -> list[tuple[int, int, int]]:
        """Profile id, start and number of compute instances of what is on the first card, from the state file."""
        gpu = self.state.read().gpus[0]
        return [(i.profile_id, i.start, len(i.compute_instances)) for i in gpu.gpu_instances]

    def mig_mode(self) -> bool:
        return self.state.read().gpus[0].mig_current

    def hold(self) -> int:
        """Let this process hold the first card."""
        pid = os.getpid()
        process = Process(pid=pid, started=start_time(pid) or 0, uid=0, kind=ProcessKind.COMPUTE)
        self.state.change_gpu(self.first, lambda gpu: (replace(gpu, processes=(process,)), None))
        return pid

    def let_go(self) -> None:
        self.state.change_gpu(self.first, lambda gpu: (replace(gpu, processes=()), None))


@pytest.fixture
def bench_of(tmp_path: Path) -> Iterator[Callable[[str], Bench]]:
    made: list[Bench] = []

    def make(scenario: str) -> Bench:
        made.append(Bench(initialise(tmp_path / "machine", scenario)))
        return made[-1]

    yield make
    for bench in made:
        bench.gpus.close()


@pytest.fixture
def hopper(bench_of: Callable[[str], Bench]) -> Bench:
    return bench_of("h100x8")


@pytest.fixture
def ampere(bench_of: Callable[[str], Bench]) -> Bench:
    return bench_of("a100x8")


def test_facts_of_an_h100(hopper: Bench) -> None:
    facts = hopper.gpus.facts()
    assert len(facts) == 8
    first = facts[0]
    assert first.pci_address == hopper.first
    assert first.product_name == "NVIDIA H100 80GB HBM3"
    assert (first.brand, first.architecture, first.compute_capability) == ("Nvidia", "Hopper", (9, 0))
    assert first.memory == 81559 * 2**20
    assert first.mig_mode_change is MigModeChange.WHEN_IDLE
    assert (first.mig_enabled, first.compute_mode, first.instances) == (False, ComputeMode.DEFAULT, ())


def test_sysfs_gives_place_and_root_of_each_card(hopper: Bench) -> None:
    state = hopper.state.read()
    assert [(f.numa_node, f.pcie_root) for f in hopper.gpus.facts()] == [(g.numa_node, g.pcie_root) for g in state.gpus]


def test_profiles_carry_names_starts_and_engines(hopper: Bench) -> None:
    profiles = {profile.name: profile for profile in hopper.facts().profiles}
    starts = {name: [p.start for p in profile.placements] for name, profile in profiles.items()}
    assert starts == {
        "1g.10gb": [0, 1, 2, 3, 4, 5, 6],
        "1g.10gb+me": [0, 1, 2, 3, 4, 5, 6],
        "1g.20gb": [0, 2, 4, 6],
        "2g.20gb": [0, 2, 4],
        "3g.40gb": [0, 4],
        "4g.40gb": [0],
        "7g.80gb": [0],
    }
    three = profiles["3g.40gb"]
    assert (three.id, three.compute_slices, three.memory) == (9, 3, 40448 * 2**20)
    assert (three.multiprocessors, three.copy_engines, three.decoders, three.ofa_engines) == (60, 3, 3, 0)


def test_a_mixed_node_tells_who_can_be_partitioned(bench_of: Callable[[str], Bench]) -> None:
    facts = bench_of("mixed").gpus.facts()
    by_product = {f.product_name: f.mig_mode_change for f in facts}
    assert MigModeChange.IMPOSSIBLE in by_product.values()
    assert all(bool(f.profiles) == (f.mig_mode_change is not MigModeChange.IMPOSSIBLE) for f in facts)


def test_create_makes_both_instances_in_mig_mode(hopper: Bench) -> None:
    hopper.gpus.enter_mig(hopper.first)
    hopper.gpus.enter_mig(hopper.first)
    made = hopper.gpus.create_mig(hopper.first, THREE_AT_4)
    assert hopper.mig_mode()
    assert hopper.instances() == [(9, 4, 1)]
    instance = hopper.state.read().gpus[0].gpu_instances[0]
    assert (made.gpu, made.placement, made.gpu_instance_id) == (hopper.first, THREE_AT_4, instance.id)
    assert (made.uuid, made.compute_instance_id) == (instance.compute_instances[0].uuid, 0)
    assert hopper.facts().instances == (made,)


def test_create_completes_what_a_crash_left_half_made(hopper: Bench) -> None:
    hopper.gpus.enter_mig(hopper.first)
    hopper.state.inject(Injection(function="nvmlGpuInstanceCreateComputeInstance", code=999))
    with pytest.raises(NvmlError, match="nvmlGpuInstanceCreateComputeInstance answered"):
        hopper.gpus.create_mig(hopper.first, THREE_AT_4)
    half = hopper.gpus.find_mig(hopper.first, THREE_AT_4)
    assert half is not None
    assert half.uuid is None
    assert hopper.instances() == [(9, 4, 0)]
    assert hopper.gpus.create_mig(hopper.first, THREE_AT_4).uuid
    assert hopper.instances() == [(9, 4, 1)]


def test_the_mode_is_left_with_the_last_instance(hopper: Bench) -> None:
    hopper.gpus.enter_mig(hopper.first)
    hopper.gpus.create_mig(hopper.first, THREE_AT_4)
    hopper.gpus.create_mig(hopper.first, ONE_AT_0)
    hopper.gpus.remove_mig(hopper.first, THREE_AT_4)
    hopper.gpus.leave_mig_if_empty(hopper.first)
    assert (hopper.instances(), hopper.mig_mode()) == ([(19, 0, 1)], True)
    hopper.gpus.remove_mig(hopper.first, ONE_AT_0)
    assert (hopper.instances(), hopper.mig_mode()) == ([], True)
    hopper.gpus.leave_mig_if_empty(hopper.first)
    hopper.gpus.leave_mig_if_empty(hopper.first)
    assert not hopper.mig_mode()


@pytest.mark.parametrize("ask", ["leave_mig", "leave_mig_if_empty"])
def test_a_wish_that_a_driver_left_when_it_died_is_taken_back(hopper: Bench, ask: str) -> None:
    hopper.state.change_gpu(hopper.first, lambda gpu: (replace(gpu, mig_pending=True), None))
    getattr(hopper.gpus, ask)(hopper.first)
    assert not hopper.state.read().gpus[0].mig_pending


def test_the_wish_of_a_card_that_needs_a_reset_may_be_anybody_s(ampere: Bench) -> None:
    ampere.state.change_gpu(ampere.first, lambda gpu: (replace(gpu, mig_pending=True), None))
    ampere.gpus.leave_mig(ampere.first)
    assert ampere.state.read().gpus[0].mig_pending


def test_remove_of_an_instance_without_compute_instance(hopper: Bench) -> None:
    hopper.gpus.enter_mig(hopper.first)
    hopper.state.inject(Injection(function="nvmlGpuInstanceCreateComputeInstance", code=999))
    with pytest.raises(GpuError):
        hopper.gpus.create_mig(hopper.first, THREE_AT_4)
    hopper.gpus.remove_mig(hopper.first, THREE_AT_4)
    assert hopper.instances() == []


def test_remove_of_what_is_absent_is_done(hopper: Bench) -> None:
    hopper.gpus.remove_mig(hopper.first, THREE_AT_4)
    assert hopper.gpus.find_mig(hopper.first, THREE_AT_4) is None


def test_a_taken_placement_is_refused_with_a_next_step(hopper: Bench) -> None:
    hopper.gpus.enter_mig(hopper.first)
    hopper.gpus.create_mig(hopper.first, MigPlacement(profile_id=0, start=0, size=8))
    with pytest.raises(GpuError, match="Another GPU instance is in its way") as refusal:
        hopper.gpus.create_mig(hopper.first, THREE_AT_4)
    assert str(refusal.value).startswith(f"GPU {hopper.first}: nvmlDeviceCreateGpuInstanceWithPlacement answered")


def test_a_held_card_does_not_enter_mig_mode_and_keeps_no_wish(hopper: Bench) -> None:
    pid = hopper.hold()
    with pytest.raises(NvmlError, match=f"held by process {pid}") as refusal:
        hopper.gpus.enter_mig(hopper.first)
    assert refusal.value.code == 19
    gpu = hopper.state.read().gpus[0]
    assert (gpu.mig_current, gpu.mig_pending) == (False, False)


def test_a_card_that_is_held_stays_in_mig_mode(hopper: Bench) -> None:
    hopper.gpus.enter_mig(hopper.first)
    hopper.hold()
    with pytest.raises(GpuError, match="held by process"):
        hopper.gpus.leave_mig_if_empty(hopper.first)
    assert hopper.mig_mode()
    with pytest.raises(GpuError, match="held by process"):
        hopper.gpus.leave_mig(hopper.first)
    hopper.let_go()
    hopper.gpus.leave_mig(hopper.first)
    assert not hopper.mig_mode()


def test_a_card_with_instances_is_not_made_whole(hopper: Bench) -> None:
    hopper.gpus.enter_mig(hopper.first)
    hopper.gpus.create_mig(hopper.first, THREE_AT_4)
    with pytest.raises(GpuError, match="1 GPU instances are on it"):
        hopper.gpus.leave_mig(hopper.first)
    assert hopper.instances() == [(9, 4, 1)]


def test_ampere_is_never_switched(ampere: Bench) -> None:
    assert ampere.facts().mig_mode_change is MigModeChange.NEEDS_RESET
    with pytest.raises(GpuError, match="can't be switched on without a reset"):
        ampere.gpus.enter_mig(ampere.first)
    gpu = ampere.state.read().gpus[0]
    assert (gpu.mig_current, gpu.mig_pending) == (False, False)


def test_ampere_in_mig_mode_stays_there_when_the_last_instance_goes(ampere: Bench) -> None:
    ampere.state.change_gpu(ampere.first, lambda gpu: (replace(gpu, mig_current=True, mig_pending=True), None))
    assert ampere.facts().mig_enabled
    ampere.gpus.create_mig(ampere.first, THREE_AT_4)
    ampere.gpus.remove_mig(ampere.first, THREE_AT_4)
    ampere.gpus.leave_mig_if_empty(ampere.first)
    gpu = ampere.state.read().gpus[0]
    assert (gpu.gpu_instances, gpu.mig_current, gpu.mig_pending) == ((), True, True)


def test_compute_mode_is_set_and_read(hopper: Bench) -> None:
    hopper.gpus.set_compute_mode(hopper.first, ComputeMode.EXCLUSIVE_PROCESS)
    assert hopper.state.read().gpus[0].compute_mode == 3
    assert hopper.facts().compute_mode is ComputeMode.EXCLUSIVE_PROCESS


def test_a_lost_card_leaves_its_neighbours(hopper: Bench) -> None:
    hopper.state.inject(Injection(function="nvmlDeviceGetName", code=15))
    assert [f.pci_address for f in hopper.gpus.facts()] == [g.pci_address for g in hopper.state.read().gpus[1:]]


def test_an_unknown_card_is_named(hopper: Bench) -> None:
    with pytest.raises(GpuError, match=r"GPU 0000:ff:00\.0: nvmlDeviceGetHandleByPciBusId answered"):
        hopper.gpus.find_mig(PciAddress("0000:ff:00.0"), THREE_AT_4)
