"""How much work kube-scheduler's own search would have, to tell where it runs into its time limit. Pure."""

from __future__ import annotations

from typing import Final

from dra.allocation.result import SchedulerTimesOut, Warnings

# Measured with the scheduler's library (`allocateOne` of k8s.io/dynamic-resource-allocation v0.37.2) on one core.
_SECONDS_PER_STEP: Final = 2.5e-6
_SECONDS_PER_DEVICE: Final = 2.5e-7
_LOOKED_AT: Final = 0.5  # of the devices that a node sees, in a step
# The limit is 10 s (`FilterTimeout` of kube-scheduler's DynamicResources plugin); machines and estimates differ.
_WARN_SECONDS: Final = 5.0


class Effort:
    """Counts steps, those of ours and those that only the scheduler takes. `positions`: devices that the node sees."""

    __slots__ = ("positions", "steps")

    def __init__(self, positions: int) -> None:
        self.positions = positions
        self.steps = 0

    def skip(self, steps: int) -> None:
        """The scheduler takes about so many steps for an attempt that we left out."""
        self.steps += steps

    def warnings(self) -> Warnings:
        """A warning where that is likely to take the scheduler longer than it may."""
        seconds = self.steps * (_SECONDS_PER_STEP + self.positions * _LOOKED_AT * _SECONDS_PER_DEVICE)
        if seconds < _WARN_SECONDS:
            return ()
        return (SchedulerTimesOut(steps=self.steps, seconds=min(seconds, 1e12)),)
