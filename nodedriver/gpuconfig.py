"""GpuConfig and MigDeviceConfig: how a whole card, or a MIG device, is shared by the processes of its claim. Pure.

Fields follow NVIDIA's kinds; `deviceconfigs` says which document holds for which device. In our own spelling the fields
are the cut that we serve, in NVIDIA's all of theirs, each handled or refused with the reason. Bytes and percent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from nodedriver.configfields import DeviceConfigError, Fields

MIB = 1024 * 1024
_PERCENTAGE, _MEMORY = "defaultActiveThreadPercentage", "defaultPinnedDeviceMemoryLimit"
_PER_DEVICE, _MULTI_USER = "defaultPerDevicePinnedMemoryLimit", "multiUser"


class Strategy(StrEnum):
    """How a device is shared."""

    TIME_SLICING = "TimeSlicing"
    MPS = "MPS"


class Interval(StrEnum):
    """Time slices as nvidia-smi compute-policy knows them."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuConfig:
    """What one document, or several together, say. None: nothing said. `strategy` None means exclusive use."""

    strategy: Strategy | None = None
    interval: Interval | None = None
    thread_percentage: int | None = None
    memory_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsLimits:
    """What MPS holds a client to: percent of threads, bytes of device memory. None: no limit of ours."""

    thread_percentage: int | None = None
    memory_limit: int | None = None


type ReadMps = Callable[[Fields], GpuConfig]  # the object `sharing.mpsConfig`


def read_gpu_config(document: Fields) -> GpuConfig:
    """The sharing of a whole card, or of its time."""
    return _read(document, ("strategy", "timeSlicingConfig", "mpsConfig"), _mps)


def read_mig_config(document: Fields) -> GpuConfig:
    """The sharing of a MIG device. It has no time slice of its own, so no `timeSlicingConfig`."""
    return _read(document, ("strategy", "mpsConfig"), _mps)


def read_nvidia_gpu_config(document: Fields) -> GpuConfig:
    """The same in NVIDIA's spelling."""
    return _read(document, ("strategy", "timeSlicingConfig", "mpsConfig"), _nvidia_mps)


def read_nvidia_mig_config(document: Fields) -> GpuConfig:
    """The same in NVIDIA's spelling."""
    return _read(document, ("strategy", "mpsConfig"), _nvidia_mps)


def tighten(of_class: GpuConfig, of_claim: GpuConfig) -> GpuConfig:
    """What holds where both speak: the class binds, and the claim may only ask for less."""
    if of_class.strategy and of_claim.strategy and of_class.strategy is not of_claim.strategy:
        raise DeviceConfigError(
            f"sharing.strategy: the DeviceClass sets {of_class.strategy} and the ResourceClaim {of_claim.strategy}; "
            "the class binds, so leave the claim's out or make it the same"
        )
    return GpuConfig(
        strategy=of_class.strategy or of_claim.strategy,
        interval=of_class.interval or of_claim.interval,
        thread_percentage=smallest(of_class.thread_percentage, of_claim.thread_percentage),
        memory_limit=smallest(of_class.memory_limit, of_claim.memory_limit),
    )


def smallest(*values: int | None) -> int | None:
    """The smallest value that is given, or None."""
    return min((value for value in values if value is not None), default=None)


def _read(document: Fields, allowed: tuple[str, ...], read_mps: ReadMps) -> GpuConfig:
    if "sharing" not in document:
        return GpuConfig()
    sharing = document.inner("sharing", allowed)
    strategy = Strategy(sharing.must_be("strategy", tuple(Strategy)))
    _refuse_other_strategy(sharing, strategy)
    if strategy is Strategy.TIME_SLICING:
        return GpuConfig(strategy=strategy, interval=_interval(sharing))
    return replace(read_mps(sharing), strategy=strategy)


def _refuse_other_strategy(sharing: Fields, strategy: Strategy) -> None:
    other = "mpsConfig" if strategy is Strategy.TIME_SLICING else "timeSlicingConfig"
    if other in sharing:
        raise DeviceConfigError(
            f"{sharing.path(other)} does not belong to {sharing.path('strategy')} {strategy}: remove one of the two"
        )


def _interval(sharing: Fields) -> Interval:
    if "timeSlicingConfig" not in sharing:
        return Interval.DEFAULT
    config = sharing.inner("timeSlicingConfig", ("interval",))
    return Interval(config.must_be("interval", tuple(Interval))) if "interval" in config else Interval.DEFAULT


def _mps(sharing: Fields) -> GpuConfig:
    limits = sharing.inner("mpsConfig", (_PERCENTAGE, _MEMORY))
    return GpuConfig(thread_percentage=limits.whole_number(_PERCENTAGE, 1, 100), memory_limit=_memory(limits, _MEMORY))


def _nvidia_mps(sharing: Fields) -> GpuConfig:
    limits = sharing.inner("mpsConfig", (_PERCENTAGE, _MEMORY, _PER_DEVICE, _MULTI_USER))
    if _MULTI_USER in limits and limits.values[_MULTI_USER] is not True:
        raise limits.refuse(
            _MULTI_USER, "can't be had: pods of different users share a card here, so daemons always serve all of them"
        )
    return GpuConfig(
        thread_percentage=limits.whole_number(_PERCENTAGE, 1, 100),
        memory_limit=_of_device(limits) or _memory(limits, _MEMORY),
    )


def _of_device(limits: Fields) -> int | None:
    """NVIDIA's limit by index or UUID, which goes before that for all. A daemon of ours serves one device, index 0."""
    devices = limits.any_object(_PER_DEVICE)
    strange = next((name for name in devices if name != "0"), None)
    if strange is not None:
        raise DeviceConfigError(
            f"{limits.path(_PER_DEVICE)}: {strange[:80]!r} is not a device of this daemon, which serves one, with the "
            f'index "0": use "0", or {_MEMORY}'
        )
    return _memory(Fields(limits.path(_PER_DEVICE), devices, ("0",)), "0")


def _memory(limits: Fields, name: str) -> int | None:
    limit = limits.quantity(name)
    if limit is not None and limit < MIB:
        raise limits.refuse(name, "is less than 1Mi, the least that MPS can limit to")
    return limit
