"""What NVML has to do for the driver to be right, on the stand-in's cards and, by `make test GPU=1`, on a real one.

The same tests on both: a card that changes its MIG mode when idle, one that needs a reset for it, one without MIG. A
real card must be idle; its modes are as before afterwards.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nodedriver.facts import ComputeMode, GpuFacts, MigModeChange, MigPlacement, PciAddress
from nodedriver.nvml import Nvml
from nodedriver.ports import GpuError
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon.fleet import initialise
from tests.realgpu import idle, open_real
from tests.simulator.machines import refused_with

REAL = "a real card"
CARDS = (REAL,) if os.environ.get("PORTICO_GPU") else ("h100x8", "a100x8", "l4x4")


@dataclass(frozen=True, slots=True)
class Bench:
    """One idle card, the driver's door to it, and where its kernel modules tell of it."""

    gpus: Nvml
    address: PciAddress
    proc: Path

    def facts(self) -> GpuFacts:
        return self.gpus.facts_of(self.address)

    @property
    def switches(self) -> bool:
        """Whether it changes its MIG mode when it is idle."""
        return self.facts().mig_mode_change is MigModeChange.WHEN_IDLE

    def handle(self) -> Any:
        """Anew each time: a change of mode ends handles."""
        return pynvml.nvmlDeviceGetHandleByPciBusId(self.address)

    def places(self) -> list[MigPlacement]:
        """Two placements of one profile that do not overlap."""
        profile = next(each for each in self.facts().profiles if each.max_instances == 2)
        first, *_, last = profile.placements
        assert first.start + first.size <= last.start
        return [first, last]

    def create(self, placement: MigPlacement) -> Any:
        place = pynvml.c_nvmlGpuInstancePlacement_t(start=placement.start, size=placement.size)
        make = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement
        return make(self.handle(), placement.profile_id, ctypes.byref(place))


@pytest.fixture(params=CARDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == REAL:
        gpus, proc = open_real(), Path("/proc")
    else:
        tree = initialise(tmp_path / "machine", request.param)
        silicon_nvml.install(tree.state)
        gpus, proc = Nvml(library=None, sys_root=tree.sys), tree.proc
    made = Bench(gpus, idle(gpus), proc)
    before = made.facts()
    yield made
    for instance in made.facts().instances:
        gpus.remove_mig(made.address, instance.placement)
    if not before.mig_enabled:
        gpus.leave_mig(made.address)
    if before.compute_mode is not made.facts().compute_mode:
        gpus.set_compute_mode(made.address, before.compute_mode)
    gpus.close()


def test_a_card_is_found_by_each_of_its_names(bench: Bench) -> None:
    facts = bench.facts()
    index = pynvml.nvmlDeviceGetIndex(bench.handle())
    for handle in (pynvml.nvmlDeviceGetHandleByIndex(index), pynvml.nvmlDeviceGetHandleByUUID(facts.uuid)):
        assert pynvml.nvmlDeviceGetUUID(handle) == facts.uuid
    assert facts.uuid.startswith("GPU-")
    assert facts.uuid in {each.uuid for each in bench.gpus.facts()}


def test_the_kernel_module_tells_of_the_same_card(bench: Bench) -> None:
    facts = bench.facts()
    information = (bench.proc / "driver/nvidia/gpus" / bench.address / "information").read_text()
    lines = dict(line.split(":", 1) for line in information.splitlines() if ":" in line)
    told = {key.strip(): value.strip() for key, value in lines.items()}
    assert (told["Device Minor"], told["GPU UUID"]) == (str(facts.minor), facts.uuid)


def test_unknown_cards_are_refused(bench: Bench) -> None:
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetHandleByIndex(pynvml.nvmlDeviceGetCount())
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlDeviceGetHandleByUUID("GPU-00000000-0000-0000-0000-000000000000")


def test_a_wrong_version_word_is_refused(bench: Bench) -> None:
    with refused_with(pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
        pynvml.nvmlDeviceGetMemoryInfo(bench.handle(), version=0x7F000028)


def test_waiting_for_an_event_ends_with_the_time(bench: Bench) -> None:
    events = bench.gpus.events([bench.address])
    assert events.unmonitored == ()
    assert events.wait(10) is None


def test_the_compute_mode_is_what_was_set(bench: Bench) -> None:
    bench.gpus.set_compute_mode(bench.address, ComputeMode.EXCLUSIVE_PROCESS)
    assert bench.facts().compute_mode is ComputeMode.EXCLUSIVE_PROCESS
    bench.gpus.set_compute_mode(bench.address, ComputeMode.DEFAULT)
    assert bench.facts().compute_mode is ComputeMode.DEFAULT


def test_profiles_and_their_placements_are_known_without_mig_mode(bench: Bench) -> None:
    facts = bench.facts()
    assert not facts.mig_enabled
    assert bool(facts.profiles) == (facts.mig_mode_change is not MigModeChange.IMPOSSIBLE)
    for profile in facts.profiles:
        assert 1 <= profile.max_instances <= len(profile.placements)
        assert 0 < profile.memory <= facts.memory
        assert len({place.start for place in profile.placements}) == len(profile.placements)


def test_nothing_is_made_outside_mig_mode(bench: Bench) -> None:
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        bench.create(MigPlacement(0, 0, 8))


def test_a_mode_that_needs_a_reset_stays_pending_and_can_be_taken_back(bench: Bench) -> None:
    """A newer card switches at once, one without MIG has no mode."""
    if not bench.facts().profiles:
        with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
            pynvml.nvmlDeviceSetMigMode(bench.handle(), 1)
        return
    status, expected = pynvml.nvmlDeviceSetMigMode(bench.handle(), 1), [1, 1] if bench.switches else [0, 1]
    assert status == (pynvml.NVML_SUCCESS if bench.switches else pynvml.NVML_ERROR_RESET_REQUIRED)
    assert pynvml.nvmlDeviceGetMigMode(bench.handle()) == expected
    assert pynvml.nvmlDeviceSetMigMode(bench.handle(), 0) == pynvml.NVML_SUCCESS
    assert pynvml.nvmlDeviceGetMigMode(bench.handle()) == [0, 0]


def test_instances_are_made_where_they_were_wished_and_removed_in_order(bench: Bench) -> None:
    if not bench.switches:
        with pytest.raises(GpuError):
            bench.gpus.enter_mig(bench.address)
        return
    first, last = bench.places()
    bench.gpus.enter_mig(bench.address)
    instance = bench.create(last)
    compute = pynvml.nvmlGpuInstanceCreateComputeInstance(instance, _filling(instance))
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlComputeInstanceGetInfo(compute).device).startswith("MIG-")
    with refused_with(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES):
        bench.create(last)
    with refused_with(pynvml.NVML_ERROR_IN_USE):
        pynvml.nvmlDeviceSetMigMode(bench.handle(), 0)
    with refused_with(pynvml.NVML_ERROR_IN_USE):
        pynvml.nvmlGpuInstanceDestroy(instance)
    pynvml.nvmlComputeInstanceDestroy(compute)
    pynvml.nvmlGpuInstanceDestroy(instance)
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlGpuInstanceDestroy(instance)
    assert bench.gpus.find_mig(bench.address, last) is None
    assert bench.gpus.find_mig(bench.address, first) is None


def test_the_door_makes_finds_and_removes_an_instance(bench: Bench) -> None:
    """With the capability files that its containers need."""
    if not bench.switches:
        with pytest.raises(GpuError):
            bench.gpus.create_mig(bench.address, MigPlacement(0, 0, 8))
        return
    first, last = bench.places()
    bench.gpus.enter_mig(bench.address)
    made = bench.gpus.create_mig(bench.address, last)
    assert bench.gpus.create_mig(bench.address, last) == made
    assert bench.gpus.find_mig(bench.address, last) == made
    assert bench.gpus.find_mig(bench.address, first) is None
    folder = bench.proc / f"driver/nvidia/capabilities/gpu{bench.facts().minor}/mig/gi{made.gpu_instance_id}"
    for access in (folder / "access", folder / f"ci{made.compute_instance_id}" / "access"):
        assert access.read_text().startswith("DeviceFileMinor: ")
    look = bench.gpus.look(bench.address)
    assert look
    assert look.placements == {last}
    with pytest.raises(GpuError, match="can't be used whole: 1 GPU instances are on it"):
        bench.gpus.leave_mig(bench.address)
    bench.gpus.remove_mig(bench.address, last)
    bench.gpus.remove_mig(bench.address, last)
    bench.gpus.leave_mig(bench.address)
    assert not bench.facts().mig_enabled


def test_slots_of_mig_devices_have_holes(bench: Bench) -> None:
    if not bench.switches:
        with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NOT_FOUND):
            pynvml.nvmlDeviceGetMigDeviceHandleByIndex(bench.handle(), 0)
        return
    bench.gpus.enter_mig(bench.address)
    slots = range(pynvml.nvmlDeviceGetMaxMigDeviceCount(bench.handle()))
    assert len(slots) >= 4
    for slot in slots:
        with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
            pynvml.nvmlDeviceGetMigDeviceHandleByIndex(bench.handle(), slot)
    bench.gpus.create_mig(bench.address, bench.places()[0])
    found = [slot for slot in slots if _has_device(bench, slot)]
    assert len(found) == 1


def _has_device(bench: Bench, slot: int) -> bool:
    try:
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(bench.handle(), slot)
    except pynvml.NVMLError_NotFound:
        return False
    return True


def _filling(instance: Any) -> int:
    """The compute instance profile with most slices."""
    found: dict[int, int] = {}
    for number in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, 0)
        except pynvml.NVMLError:
            continue
        found.setdefault(int(info.sliceCount), int(info.id))
    return found[max(found)]
