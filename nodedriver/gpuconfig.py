"""GpuConfig, the opaque parameters of our driver in classes and claims: strict reading, and what holds when several do.

Pure. Fields follow NVIDIA's GpuConfig in the cut of `resource.<driver name>/v1alpha1`: an unknown field, kind, version
or value is an error that names the field's path and what is allowed. Limits in bytes and percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dra.errors import InvalidQuantityError
from dra.objects import DeviceAllocationConfiguration, DeviceRequestAllocationResult, JsonObject
from dra.quantity import parse_quantity

KIND = "GpuConfig"
MIB = 1024 * 1024


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


class GpuConfigError(Exception):
    """Parameters are not a GpuConfig, or contradict another one. The text names the field and what is allowed."""


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


def api_version(driver_name: str) -> str:
    """The only apiVersion that this driver reads."""
    return f"resource.{driver_name}/v1alpha1"


def parse_gpu_config(parameters: JsonObject, driver_name: str) -> GpuConfig:
    """Read one document; GpuConfigError for anything that is not exactly a GpuConfig of this driver."""
    root = _Fields("", parameters, ("apiVersion", "kind", "sharing"))
    root.must_be("apiVersion", (api_version(driver_name),))
    root.must_be("kind", (KIND,))
    if "sharing" not in parameters:
        return GpuConfig()
    sharing = root.inner("sharing", ("strategy", "timeSlicingConfig", "mpsConfig"))
    strategy = Strategy(sharing.must_be("strategy", tuple(Strategy)))
    _refuse_other_strategy(sharing, strategy)
    if strategy is Strategy.TIME_SLICING:
        return GpuConfig(strategy=strategy, interval=_interval(sharing))
    mps = sharing.inner("mpsConfig", ("defaultActiveThreadPercentage", "defaultPinnedDeviceMemoryLimit"))
    return GpuConfig(strategy=strategy, thread_percentage=_percentage(mps), memory_limit=_memory(mps))


def config_for(
    result: DeviceRequestAllocationResult, entries: Iterable[DeviceAllocationConfiguration], driver_name: str
) -> GpuConfig:
    """What holds for one allocated device: the class's last entry for it, tightened by the claim's last entry.

    An entry names `main`, `main/sub` or no request, which means all (DRA, "Config merge order"). Every entry that
    applies is read, so an invalid one is an error even where a later one would win. The class binds, as users can't
    forge its source.
    """
    last = {"FromClass": GpuConfig(), "FromClaim": GpuConfig()}
    for entry in entries:
        if entry.opaque is None or entry.opaque.driver != driver_name or not _applies(entry, result):
            continue
        try:
            last[entry.source] = parse_gpu_config(entry.opaque.parameters, driver_name)
        except GpuConfigError as error:
            raise GpuConfigError(f"{KIND} of the {_origin(entry)}: {error}") from error
    return _tighten(last["FromClass"], last["FromClaim"])


def _applies(entry: DeviceAllocationConfiguration, result: DeviceRequestAllocationResult) -> bool:
    return not entry.requests or not {result.request, result.device_request}.isdisjoint(entry.requests)


def _origin(entry: DeviceAllocationConfiguration) -> str:
    return "DeviceClass" if entry.source == "FromClass" else "ResourceClaim"


def _tighten(of_class: GpuConfig, of_claim: GpuConfig) -> GpuConfig:
    if of_class.strategy and of_claim.strategy and of_class.strategy is not of_claim.strategy:
        raise GpuConfigError(
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


def _refuse_other_strategy(sharing: _Fields, strategy: Strategy) -> None:
    other = "mpsConfig" if strategy is Strategy.TIME_SLICING else "timeSlicingConfig"
    if other in sharing.values:
        raise GpuConfigError(f"sharing.{other} does not belong to sharing.strategy {strategy}: remove one of the two")


def _interval(sharing: _Fields) -> Interval:
    config = sharing.inner("timeSlicingConfig", ("interval",))
    if "interval" not in config.values:
        return Interval.DEFAULT
    return Interval(config.must_be("interval", tuple(Interval)))


def _percentage(mps: _Fields) -> int | None:
    name = "defaultActiveThreadPercentage"
    value = mps.values.get(name)
    if name not in mps.values:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 100:
        raise GpuConfigError(f"{mps.path(name)}: {value!r} is not a whole number from 1 to 100")
    return value


def _memory(mps: _Fields) -> int | None:
    name = "defaultPinnedDeviceMemoryLimit"
    value = mps.values.get(name)
    if name not in mps.values:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise GpuConfigError(f"{mps.path(name)}: {value!r} is not a quantity such as 8Gi")
    try:
        limit = parse_quantity(str(value)).value
    except InvalidQuantityError as error:
        raise GpuConfigError(f"{mps.path(name)}: {error}") from error
    if limit < MIB:
        raise GpuConfigError(f"{mps.path(name)}: {value!r} is less than 1Mi, the least that MPS can limit to")
    return limit


class _Fields:
    """A JSON object and where it stands, so that an error can name the path."""

    def __init__(self, prefix: str, values: Mapping[str, object], allowed: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.values = values
        unknown = next((name for name in values if name not in allowed), None)
        if unknown is not None:
            raise GpuConfigError(f"{self.path(unknown)} is not a known field; allowed here: {', '.join(allowed)}")

    def path(self, name: str) -> str:
        return f"{self.prefix}.{name}" if self.prefix else name

    def must_be(self, name: str, allowed: tuple[str, ...]) -> str:
        """A required text out of a closed set."""
        value = self.values.get(name)
        if not isinstance(value, str) or value not in allowed:
            found = f"{value!r}" if name in self.values else "nothing"
            raise GpuConfigError(f"{self.path(name)}: {found} is not allowed; use {' or '.join(allowed)}")
        return value

    def inner(self, name: str, allowed: tuple[str, ...]) -> _Fields:
        """An object inside; absent counts as empty."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise GpuConfigError(f"{self.path(name)}: {value!r} is not an object")
        return _Fields(self.path(name), value, allowed)
