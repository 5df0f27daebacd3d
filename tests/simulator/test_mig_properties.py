"""Whatever is created and destroyed, in whatever order: placements never overlap and every process sees the same."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pynvml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from simulator.silicon import nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import Gpu
from simulator.silicon.state import State
from tests.simulator.machines import Machine

# Of an H100 80GB: profile id -> compute slices, OFA engines. Sizes and starts are drawn freely, legal or not.
COMPUTE_SLICES = {19: 1, 20: 1, 15: 1, 14: 2, 9: 3, 5: 4, 0: 7}
WHOLE_COMPUTE_PROFILE = {19: 0, 20: 0, 15: 0, 14: 1, 9: 2, 5: 3, 0: 4}


class MigSequences(RuleBasedStateMachine):
    """Create and destroy at random through pynvml; refusals are part of the game, the invariants are not."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        tree = initialise(Path(self.folder.name) / "machine")
        nvml.install(tree.state)
        pynvml.nvmlInit()
        self.machine = Machine(tree, State(tree.state))
        pynvml.nvmlDeviceSetMigMode(self.machine.handle(), 1)

    def gpu(self) -> Gpu:
        """As a process that has just started reads it."""
        return State(self.machine.tree.state).read().gpus[0]

    @rule(
        profile_id=st.sampled_from(sorted(COMPUTE_SLICES)),
        start=st.integers(0, 7),
        size=st.sampled_from([1, 2, 4, 8]),
        whole=st.booleans(),
    )
    def create(self, profile_id: int, start: int, size: int, *, whole: bool) -> None:
        before = self.gpu()
        try:
            instance = self.machine.create(profile_id, start, size)
        except pynvml.NVMLError:
            assert self.gpu() == before
            return
        made = self.gpu().gpu_instances[-1]
        assert (made.profile_id, made.start, made.size) == (profile_id, start, size)
        if whole:
            pynvml.nvmlGpuInstanceCreateComputeInstance(instance, WHOLE_COMPUTE_PROFILE[profile_id])

    @precondition(lambda self: self.gpu().gpu_instances)
    @rule(data=st.data())
    def destroy(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self.gpu().gpu_instances))
        instance = pynvml.nvmlDeviceGetGpuInstanceById(self.machine.handle(), chosen.id)
        for compute in chosen.compute_instances:
            pynvml.nvmlComputeInstanceDestroy(pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, compute.id))
        pynvml.nvmlGpuInstanceDestroy(instance)
        assert chosen.created not in {i.created for i in self.gpu().gpu_instances}

    @invariant()
    def placements_do_not_overlap(self) -> None:
        placed = sorted(self.gpu().gpu_instances, key=lambda i: i.start)
        assert all(left.start + left.size <= right.start for left, right in pairwise(placed))
        assert all(i.start + i.size <= 8 for i in placed)

    @invariant()
    def the_card_is_not_overdrawn(self) -> None:
        instances = self.gpu().gpu_instances
        assert sum(COMPUTE_SLICES[i.profile_id] for i in instances) <= 7
        assert sum(i.profile_id in (20, 0) for i in instances) <= 1  # the only OFA engine
        assert len({i.id for i in instances}) == len(instances)

    @invariant()
    def capability_files_are_those_of_the_instances(self) -> None:
        folder = self.machine.tree.proc / "driver/nvidia/capabilities/gpu0/mig"
        wanted = {f"gi{i.id}/access" for i in self.gpu().gpu_instances}
        wanted |= {f"gi{i.id}/ci{c.id}/access" for i in self.gpu().gpu_instances for c in i.compute_instances}
        assert {p.relative_to(folder).as_posix() for p in folder.glob("**/access")} == wanted

    def teardown(self) -> None:
        pynvml.nvmlShutdown()
        self.folder.cleanup()


TestMigSequences = MigSequences.TestCase
TestMigSequences.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
