"""A ResourceClaim and the inventory to a PreparePlan, or to the reason why this claim can't be prepared. Pure.

The table of shares and strategies: the consumed share decides, GpuConfig may tighten and never raise. Limits of all
shares of a device together never exceed it, since each is its percentage of the whole, rounded down. The time of a card
is given in slots, which hold nobody to anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dra.errors import InvalidQuantityError
from dra.objects import DeviceAllocationConfiguration, DeviceRequestAllocationResult, ResourceClaim
from dra.quantity import Format, Quantity, parse_quantity
from nodedriver.configfields import DeviceConfigError, shown
from nodedriver.deviceconfigs import VFIO, ConfigRules, config_for, sharing_of
from nodedriver.facts import DeviceType, Vendor
from nodedriver.gpuconfig import MIB, GpuConfig, Interval, MpsLimits, Strategy, smallest
from nodedriver.inventory import DeviceRecord
from nodedriver.vfioconfig import VfioConfig

WHOLE = 100  # percent
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"  # annotation of a claim of a template (resource/v1, types.go)
STEP = 5  # percent, as the inventory publishes it


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRules:
    """What a plan depends on beside claim and inventory. `mps_reserve` in bytes: memory that no share is given.

    `nvidia_configs`: opaque parameters in NVIDIA's spelling are read too.
    """

    driver_name: str
    pool: str
    mps_reserve: int
    nvidia_configs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDevice:
    """One device to prepare, or one share or some slots of it.

    `mps` None: no daemon, exclusive use (or none at all for admins). `interval` None: the card's time slice stays.
    `vfio` of a card for a virtual machine.
    """

    device_request: str
    request: str
    pool: str
    share_id: str | None
    share: int = 100
    slots: int = 0
    admin_access: bool = False
    record: DeviceRecord
    mps: MpsLimits | None = None
    interval: Interval | None = None
    vfio: VfioConfig | None = None


@dataclass(frozen=True, slots=True)
class PreparePlan:
    """The devices of our driver in the order of the allocation. `pod_claim_name` as in `PreparedClaim`."""

    devices: tuple[PlannedDevice, ...]
    pod_claim_name: str = ""


@dataclass(frozen=True, slots=True)
class PlanRefusal:
    """Why this resource claim can't be prepared, for the pod's events: what, why with numbers, what next."""

    reason: str


class _RefusedError(Exception):
    """Carries a refusal out of a helper; never leaves this module."""


def plan_claim(
    claim: ResourceClaim, records: Mapping[str, DeviceRecord], rules: PlanRules
) -> PreparePlan | PlanRefusal:
    """What preparing this allocated claim takes. The same claim and inventory give the same plan."""
    allocation = claim.status.allocation
    ours = [r for r in allocation.devices.results if r.driver == rules.driver_name] if allocation else []
    if allocation is None or not ours:
        return PlanRefusal(f"the allocation of {claim.ref} holds no device of driver {rules.driver_name}")
    try:
        planned = [_plan_device(_Asked(r, allocation.devices.config), records, rules) for r in ours]
        _refuse_many_pipes(planned)
    except (DeviceConfigError, _RefusedError) as error:
        return PlanRefusal(str(error))
    return PreparePlan(tuple(planned), claim.metadata.annotations.get(POD_CLAIM_NAME, ""))


@dataclass(frozen=True, slots=True)
class _Asked:
    """One allocated device, and all configuration of its claim."""

    result: DeviceRequestAllocationResult
    configs: tuple[DeviceAllocationConfiguration, ...]


def _plan_device(asked: _Asked, records: Mapping[str, DeviceRecord], rules: PlanRules) -> PlannedDevice:
    result = asked.result
    record = records.get(result.device)
    if record is None or result.pool != rules.pool:
        raise _RefusedError(
            f"device {result.pool}/{result.device} is not a device of this node ({rules.pool}), or not any more: "
            "delete the pod, so that another device is allocated"
        )
    own = _Share(result, record, WHOLE)
    if result.admin_access:
        return _planned(own, admin_access=True, vfio=VfioConfig() if record.type is DeviceType.VFIO else None)
    config_rules = ConfigRules(rules.driver_name, nvidia=rules.nvidia_configs)
    if record.type is DeviceType.VFIO:
        return _planned(own, vfio=config_for(VFIO, result, asked.configs, config_rules))
    config = sharing_of(result, record.type, asked.configs, config_rules)
    if record.vendor is not Vendor.NVIDIA:
        _refuse_sharing(own, config)
        return _planned(own)
    if record.type is DeviceType.TIME_SLICED:
        slots = _whole_number(result, "slots", "1", record.slots)
        return _planned(own, slots=slots, interval=_interval_of_slots(own, slots, config))
    share = _Share(result, record, _whole_number(result, "sharePercent", str(WHOLE), WHOLE))
    mps, interval = _limits(share, config, rules), _interval_of_share(share, config)
    return _planned(share, share=share.percent, mps=mps, interval=interval)


def _planned(of: _Share, **what: Any) -> PlannedDevice:
    result = of.result
    return PlannedDevice(
        device_request=result.device_request,
        request=result.request,
        pool=result.pool,
        share_id=result.share_id,
        record=of.record,
        **what,
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """A share of a device, and who asked for it."""

    result: DeviceRequestAllocationResult
    record: DeviceRecord
    percent: int

    def __str__(self) -> str:
        return f"device request {self.result.device_request!r} ({self.percent} % of {self.record.name})"

    def part_of(self, amount: int) -> int:
        """That percentage of an amount of bytes, in whole MiB, since MPS knows no smaller unit."""
        return amount * self.percent // WHOLE // MIB * MIB


def _limits(share: _Share, config: GpuConfig, rules: PlanRules) -> MpsLimits | None:
    """The row of the table: exclusive without a daemon (None), or what MPS enforces."""
    _refuse_time_slicing(share, config)
    memory = _asked_memory(share)
    if share.percent == WHOLE:
        if config.strategy is not Strategy.MPS:
            return None
        return MpsLimits(
            thread_percentage=config.thread_percentage, memory_limit=_limit_of_whole(share, config, memory)
        )
    own = share.part_of(max(share.record.memory - rules.mps_reserve, 0))
    limit = _whole_mib(smallest(own, config.memory_limit, memory)) or 0
    if limit < MIB:
        raise _RefusedError(
            f"{share}: no memory is left of its {_size(share.record.memory)} after the {_size(rules.mps_reserve)} "
            "that the driver keeps for contexts: ask for a larger share"
        )
    return MpsLimits(thread_percentage=smallest(share.percent, config.thread_percentage), memory_limit=limit)


def _limit_of_whole(share: _Share, config: GpuConfig, memory: int | None) -> int | None:
    """What is asked, or None; more than the device has is as good as all of it."""
    asked = smallest(config.memory_limit, memory)
    return None if asked is None else _whole_mib(min(asked, share.record.memory))


def _refuse_sharing(share: _Share, config: GpuConfig) -> None:
    """MPS and time slices are NVIDIA's; the card of another vendor is given whole."""
    if config.strategy is not None:
        raise _RefusedError(
            f"{share}: sharing.strategy {config.strategy} is for cards of {Vendor.NVIDIA} only, and "
            f"{share.record.name} is one of {share.record.vendor}, which is given whole: leave sharing out, or ask for "
            f'a card whose attribute vendor is "{Vendor.NVIDIA}"'
        )


def _refuse_time_slicing(share: _Share, config: GpuConfig) -> None:
    if config.strategy is not Strategy.TIME_SLICING:
        return
    if share.percent < WHOLE:
        raise _RefusedError(
            f"{share}: sharePercent {share.percent} and sharing.strategy {config.strategy} exclude each other, since "
            f"only MPS can hold a share: use {Strategy.MPS}, or ask for {WHOLE} %"
        )
    if share.record.type is DeviceType.MIG:
        raise _RefusedError(
            f"{share}: sharing.strategy {config.strategy} has no effect on a MIG device, since the time slice is a "
            f"setting of a whole card: leave sharing out, use {Strategy.MPS}, or ask for a whole card"
        )


def _interval_of_share(share: _Share, config: GpuConfig) -> Interval | None:
    """The time slice of a whole card that one claim holds alone; the default one needs no step."""
    if share.percent < WHOLE or config.interval in (None, Interval.DEFAULT):
        return None
    return config.interval


def _interval_of_slots(share: _Share, slots: int, config: GpuConfig) -> Interval | None:
    """A time slice is one for all who share the card, so only a claim that has every slot may set it."""
    what = (
        f"device request {share.result.device_request!r} ({slots} of {share.record.slots} slots of {share.record.name})"
    )
    if config.strategy is Strategy.MPS:
        raise _RefusedError(
            f"{what}: sharing.strategy {config.strategy} does not go with a time-sliced device: leave sharing out, or "
            "ask for a share of a whole card"
        )
    if config.interval in (None, Interval.DEFAULT):
        return None
    if slots < share.record.slots:
        raise _RefusedError(
            f"{what}: sharing.timeSlicingConfig.interval {config.interval} would change the time slice of all who "
            f"share the card: leave it out, or ask for all {share.record.slots} slots"
        )
    return config.interval


def _refuse_many_pipes(planned: Iterable[PlannedDevice]) -> None:
    """A process has one MPS pipe directory, so it can't use MPS on two devices; one daemon serves one device."""
    shared = [device for device in planned if device.mps is not None]
    for device_request, count in Counter(device.device_request for device in shared).items():
        if count > 1:
            these = ", ".join(f"{d.share} % of {d.record.name}" for d in shared if d.device_request == device_request)
            raise _RefusedError(
                f"device request {device_request!r} was given {count} devices under MPS ({these}): a process has one "
                "MPS pipe directory and can't use two; ask for count 1, or for whole devices without MPS"
            )


def _whole_number(result: DeviceRequestAllocationResult, name: str, default: str, most: int) -> int:
    """The consumed amount of a capacity; an API server without shares leaves the default."""
    text = result.consumed_capacity.get(name, default)
    quantity = _quantity(result, name, text)
    number = quantity.value
    if Quantity.of(number) != quantity or not 1 <= number <= most:
        raise _RefusedError(
            f"device request {result.device_request!r}: {name} {shown(text)} is not a whole number from 1 to {most}"
        )
    return number


def _asked_memory(share: _Share) -> int | None:
    """The consumed memory in bytes, None when nothing was asked (0); refused when the share does not cover it."""
    text = share.result.consumed_capacity.get("memory", "0")
    memory = _quantity(share.result, "memory", text).value
    if memory < 0 or 0 < memory < MIB:
        raise _RefusedError(f"{share}: memory {shown(text)} is less than 1Mi, the least that a share can be held to")
    if memory * WHOLE <= share.record.memory * share.percent:
        return memory or None
    covered = share.part_of(share.record.memory)
    needed = -(-memory * WHOLE // (share.record.memory * STEP)) * STEP
    advice = f"ask for {needed} %" if needed <= WHOLE else "ask for a larger device"
    raise _RefusedError(
        f"{share}: memory {_size(memory)} is more than the share covers ({share.percent} % of "
        f"{_size(share.record.memory)} is {_size(covered)}): {advice}, or for at most {_size(covered)}"
    )


def _quantity(result: DeviceRequestAllocationResult, name: str, text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except InvalidQuantityError as error:
        raise _RefusedError(
            f"device request {result.device_request!r}: consumed {name} {shown(text)} is not a quantity"
        ) from error


def _whole_mib(amount: int | None) -> int | None:
    return None if amount is None else amount // MIB * MIB


def _size(amount: int) -> str:
    return str(Quantity.of(amount, Format.BINARY_SI))
