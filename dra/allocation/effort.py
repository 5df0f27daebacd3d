"""How much work kube-scheduler's own search would have, to tell where it runs into its time limit. Pure."""

from __future__ import annotations

from typing import Final

from dra.allocation.result import SchedulerTimesOut, Warnings

# Measured with the scheduler's library (`allocateOne` of k8s.io/dynamic-resource-allocation v0.37.2) on one core.
_SECONDS_PER_STEP: Final = 4e-6
_SECONDS_PER_DEVICE: Final = 1e-7
_LIMIT_SECONDS: Final = 10.0  # DRAFilterTimeout of kube-scheduler


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
        seconds = self.steps * (_SECONDS_PER_STEP + self.positions * _SECONDS_PER_DEVICE / 2)
        if seconds < _LIMIT_SECONDS:
            return ()
        return (SchedulerTimesOut(steps=self.steps, seconds=min(seconds, 1e12)),)
