"""Facts about GPUs to the devices that a node publishes and to what prepare must know of each. Pure and deterministic.

Every mode that a card can serve is a device, and all devices of a card draw on one counter set, so that the scheduler
itself excludes what cannot coexist. Attributes carry no domain and so belong to the driver's own, whatever its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as replace_struct

from dra.mig.counters import Contents, card_contents, counter_set, draw, draw_everything
from dra.mig.placement import PlacedProfile, best_first, device_name_form
from dra.objects import (
    CapacityRange,
    CapacityRequestPolicy,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
)
from dra.quantity import Format, Quantity
from dra.semver import lenient_semver
from dra.slices import SliceContent
from nodedriver import wholecards
from nodedriver.attributes import around, nvlink, where
from nodedriver.attributes import text as _text
from nodedriver.cardmodes import CardMode, without_reset
from nodedriver.facts import (
    CardFacts,
    DeviceType,
    GpuFacts,
    MigModeChange,
    MigPlacement,
    MigProfileFacts,
    PciAddress,
    PlainCardFacts,
    Vendor,
    VfioFacts,
)
from nodedriver.vfiodevice import vfio_attributes, vfio_capacity

CARDS_PER_COUNTER_SLICE = 8  # at most 8 counter sets in a slice (ResourceSlice API)
FIRST_DEVICE_SLICE = 0x100  # counter slices come first; 256 of them stand for 2,048 cards
NO_PROFILE = ""  # migProfile of a whole card: a class that reads it must find a string, and the API takes an empty one


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """What the API server keeps of a slice; without a feature only devices that do not need it are published."""

    counters: bool = True
    shares: bool = True
    taints: bool = True
    waiting: bool = True  # binding conditions


EVERY_FEATURE = ServerFeatures()
_KEEPING_OUT = frozenset({"NoSchedule", "NoExecute"})

type TaintsOf = Callable[[PciAddress, MigPlacement | None], tuple[DeviceTaint, ...]]


def no_taints(_gpu: PciAddress, _placement: MigPlacement | None) -> tuple[DeviceTaint, ...]:
    """Every device may take claims."""
    return ()


def mode_ready(driver_name: str) -> str:
    """The binding condition of a device whose card is in the other mode: true once it is in the device's (KEP-5007)."""
    return f"{driver_name}/mode-ready"


def mode_failed(driver_name: str) -> str:
    """The binding failure condition beside it."""
    return f"{driver_name}/mode-failed"


def taint_of_unclean(driver_name: str, why: str) -> DeviceTaint:
    """The taint of a card that takes no new claims; why, as a label value such as `checkpoint-unreadable`."""
    return DeviceTaint(key=f"{driver_name}/unclean", value=why, effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class InventoryRules:
    """What an inventory depends on beside the cards. The time of a card is given in so many `slots`; 0: not at all."""

    driver_name: str
    slots: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """What prepare must know of a published device. `placement` is None for a whole card; `memory` in bytes is that of
    the whole device, not of a share; `slots` is into how many parts the time of a time-sliced device is given. `uuid`
    of a card whose vendor's library is not asked; `attributes` are those published.
    """

    name: str
    type: DeviceType
    gpu: PciAddress
    placement: MigPlacement | None
    memory: int
    slots: int = 0
    vendor: Vendor = Vendor.NVIDIA
    uuid: str = ""
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict, compare=False)

    @property
    def mode(self) -> CardMode:
        """What its card must be in."""
        return CardMode.MIG if self.placement else CardMode.WHOLE


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything a node publishes, in published order, and what stands behind each device name."""

    slices: tuple[SliceContent, ...]
    records: Mapping[str, DeviceRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Card:
    facts: GpuFacts
    rank: int
    counters: CounterSet
    rules: InventoryRules
    features: ServerFeatures


@dataclass(frozen=True, slots=True)
class _Published:
    record: DeviceRecord
    device: Device


def take_inventory(
    rules: InventoryRules,
    gpus: tuple[CardFacts, ...],
    ranks: Mapping[PciAddress, int],
    *,
    taints: TaintsOf = no_taints,
    features: ServerFeatures = EVERY_FEATURE,
) -> Inventory:
    """The node's devices. `ranks` number the cards (`nodedriver.ranks`), `taints` says what keeps a device from claims.

    A server that drops taints is not told of devices that must take no new claims.
    """
    in_order = sorted(gpus, key=lambda gpu: ranks[gpu.pci_address])
    cards = [_card(gpu, ranks[gpu.pci_address], rules, features) for gpu in in_order if isinstance(gpu, GpuFacts)]
    plain = {ranks[gpu.pci_address]: (_plain(gpu, ranks),) for gpu in in_order if isinstance(gpu, PlainCardFacts)}
    devices = sorted(({card.rank: _devices(card) for card in cards} | plain).items())
    published = {rank: tuple(_tainted(each, taints, features)) for rank, each in devices}
    records = {each.record.name: _with_attributes(each) for devices in published.values() for each in devices}
    device_slices = tuple(
        SliceContent(index=FIRST_DEVICE_SLICE + rank, devices=tuple(each.device for each in devices))
        for rank, devices in published.items()
    )
    counter_slices = _counter_slices(cards) if features.counters else ()
    # An empty pool is one slice without devices: "nothing here" instead of "not published yet".
    return Inventory((*counter_slices, *device_slices) or (SliceContent(index=FIRST_DEVICE_SLICE),), records)


def _with_attributes(published: _Published) -> DeviceRecord:
    return replace(published.record, attributes=published.device.attributes)


def _plain(gpu: PlainCardFacts, ranks: Mapping[PciAddress, int]) -> _Published:
    """A card that serves whole draws on no counters: nothing else of it can be given out beside."""
    name = f"gpu-{ranks[gpu.pci_address]}"
    record = DeviceRecord(
        name=name,
        type=DeviceType.PHYSICAL,
        gpu=gpu.pci_address,
        placement=None,
        memory=gpu.memory,
        vendor=gpu.vendor,
        uuid=gpu.uuid,
    )
    memory = {"memory": _memory(gpu.memory, None)}
    return _Published(record, Device(name=name, attributes=wholecards.attributes(gpu), capacity=memory))


def _tainted(devices: tuple[_Published, ...], taints: TaintsOf, features: ServerFeatures) -> Iterator[_Published]:
    for each in devices:
        found = taints(each.record.gpu, each.record.placement)
        if features.taints:
            yield replace(each, device=replace_struct(each.device, taints=found))
        elif all(taint.effect not in _KEEPING_OUT for taint in found):
            yield each


def _card(gpu: GpuFacts, rank: int, rules: InventoryRules, features: ServerFeatures) -> _Card:
    contents = card_contents(gpu.memory, (_contents(profile) for profile in gpu.profiles))
    slices = max((placement.size for profile in gpu.profiles for placement in profile.placements), default=0)
    return _Card(
        facts=gpu,
        rank=rank,
        counters=counter_set(f"gpu-{rank}", contents, memory_slices=slices),
        rules=rules,
        features=features,
    )


def _counter_slices(cards: list[_Card]) -> tuple[SliceContent, ...]:
    groups: dict[int, list[CounterSet]] = {}
    for card in cards:
        groups.setdefault(card.rank // CARDS_PER_COUNTER_SLICE, []).append(card.counters)
    return tuple(SliceContent(index=index, shared_counters=tuple(sets)) for index, sets in groups.items())


def _devices(card: _Card) -> tuple[_Published, ...]:
    """The devices of a card: the whole first, then its time, the MIG placements best-first, the one for machines.

    Those of the mode that a card needs a reset for are left out where the API server can't let pods wait for it.
    """
    waits = card.facts.mig_mode_change is MigModeChange.NEEDS_RESET and card.features.waiting and card.features.counters
    whole = (_whole(card),) if waits or _serves(card.facts, CardMode.WHOLE) else ()
    vfio = card.facts.vfio if card.features.counters or card.facts.only_vfio else None
    passed = (_passed_through(card, vfio),) if vfio and (waits or _serves(card.facts, CardMode.VFIO)) else ()
    if card.facts.only_vfio:
        return passed
    # Beside the whole card without counters both could be given out.
    sliced = card.rules.slots and card.features.counters and card.features.shares
    times = (_time_sliced(card),) if whole and sliced else ()
    parts = _parts(card) if waits or (card.features.counters and _serves(card.facts, CardMode.MIG)) else ()
    return (*whole, *times, *parts, *passed)


def _serves(gpu: GpuFacts, mode: CardMode) -> bool:
    """Whether prepare can bring the card into that mode. One whose MIG mode can't be changed is used whole."""
    is_mig = gpu.mig_enabled and gpu.mig_mode_change is not MigModeChange.IMPOSSIBLE
    return without_reset(CardMode.MIG if is_mig else CardMode.WHOLE, mode, gpu.mig_mode_change)


def _whole(card: _Card) -> _Published:
    gpu = card.facts
    name = f"gpu-{card.rank}"
    own = {"uuid": _text(gpu.uuid), "migProfile": _text(NO_PROFILE)} | nvlink(gpu.surroundings)
    record = DeviceRecord(
        name=name, type=DeviceType.PHYSICAL, gpu=gpu.pci_address, placement=None, memory=gpu.memory
    )  # fmt: skip
    return _Published(record, _device(card, record, own, draw_everything(card.counters)))


def _time_sliced(card: _Card) -> _Published:
    gpu = card.facts
    own = {"uuid": _text(gpu.uuid), "migProfile": _text(NO_PROFILE)} | nvlink(gpu.surroundings)
    record = DeviceRecord(
        name=f"gpu-{card.rank}-timesliced",
        type=DeviceType.TIME_SLICED,
        gpu=gpu.pci_address,
        placement=None,
        memory=gpu.memory,
        slots=card.rules.slots,
    )
    return _Published(record, _device(card, record, own, draw_everything(card.counters)))


def _passed_through(card: _Card, vfio: VfioFacts) -> _Published:
    gpu = card.facts
    record = DeviceRecord(
        name=f"gpu-{card.rank}-vfio", type=DeviceType.VFIO, gpu=gpu.pci_address, placement=None, memory=gpu.memory
    )
    own = {"migProfile": _text(NO_PROFILE), **vfio_attributes(gpu.pci_address, vfio)}
    device = _device(card, record, own, draw_everything(card.counters))
    return _Published(
        record, replace_struct(device, capacity=vfio_capacity(gpu, vfio), allow_multiple_allocations=False)
    )


def _parts(card: _Card) -> list[_Published]:
    by_choice = {
        _choice(profile, placement): (profile, placement)
        for profile in card.facts.profiles
        for placement in profile.placements
    }
    return [_part(card, *by_choice[choice]) for choice in best_first(by_choice)]


def _choice(profile: MigProfileFacts, placement: MigPlacement) -> PlacedProfile:
    return PlacedProfile(
        profile=profile.name,
        start=placement.start,
        size=placement.size,
        compute_slices=profile.compute_slices,
        max_instances=profile.max_instances,
    )


def _part(card: _Card, profile: MigProfileFacts, placement: MigPlacement) -> _Published:
    record = DeviceRecord(
        name=f"gpu-{card.rank}-mig-{device_name_form(profile.name)}-{placement.start}",
        type=DeviceType.MIG,
        gpu=card.facts.pci_address,
        placement=placement,
        memory=profile.memory,
    )
    own = {
        "parentUUID": _text(card.facts.uuid),
        "migProfile": _text(profile.name),
        "multiprocessors": DeviceAttribute(int_=profile.multiprocessors),
    }
    memory_slices = range(placement.start, placement.start + placement.size)
    return _Published(record, _device(card, record, own, draw(card.counters.name, _contents(profile), memory_slices)))


def _device(
    card: _Card, record: DeviceRecord, own: dict[str, DeviceAttribute], drawn: DeviceCounterConsumption
) -> Device:
    serves = _serves(card.facts, record.mode)
    driver_name = card.rules.driver_name
    return Device(
        name=record.name,
        attributes=_common_attributes(card.facts) | {"deviceType": _text(record.type)} | own,
        capacity=_capacity(record) if card.features.shares else {"memory": _memory(record.memory, None)},
        consumes_counters=(drawn,) if card.features.counters else (),
        allow_multiple_allocations=card.features.shares,
        binds_to_node=not serves,
        binding_conditions=() if serves else (mode_ready(driver_name),),
        binding_failure_conditions=() if serves else (mode_failed(driver_name),),
    )


def _capacity(record: DeviceRecord) -> dict[str, DeviceCapacity]:
    return _slots(record.slots, record.memory) if record.slots else _shares(record.memory)


def _slots(count: int, memory: int) -> dict[str, DeviceCapacity]:
    """A plain device request takes one slot. Time slices hold nobody to any memory, so none can be asked for."""
    one = CapacityRequestPolicy(default="1", valid_range=CapacityRange(min="1", max=str(count), step="1"))
    nothing = CapacityRequestPolicy(default="0", valid_values=("0",))
    return {"slots": DeviceCapacity(value=str(count), request_policy=one), "memory": _memory(memory, nothing)}


def _shares(memory: int) -> dict[str, DeviceCapacity]:
    """The capacities that a share consumes.

    Each has a policy: a capacity without a default is consumed whole by the first share, and no second would fit
    (KEP-5075). A plain device request takes 100 %; memory only tightens, so its default is 0.
    """
    percent = CapacityRequestPolicy(default="100", valid_range=CapacityRange(min="5", max="100", step="5"))
    tightening = CapacityRequestPolicy(default="0", valid_range=CapacityRange(min="0"))
    return {
        "sharePercent": DeviceCapacity(value="100", request_policy=percent),
        "memory": _memory(memory, tightening),
    }


def _memory(amount: int, policy: CapacityRequestPolicy | None) -> DeviceCapacity:
    return DeviceCapacity(value=str(Quantity.of(amount, Format.BINARY_SI)), request_policy=policy)


def _common_attributes(gpu: GpuFacts) -> dict[str, DeviceAttribute]:
    """What all devices of a card say, MIG or whole, so that no class meets a missing key (that aborts scheduling)."""
    major, minor = gpu.compute_capability
    cuda_major, cuda_minor = gpu.cuda_driver_version
    driver = lenient_semver(gpu.driver_version)
    known: dict[str, DeviceAttribute | None] = {
        "vendor": _text(Vendor.NVIDIA),
        "productName": _text(gpu.product_name),
        "brand": _text(gpu.brand),
        "architecture": _text(gpu.architecture),
        "cudaReady": DeviceAttribute(bool_=True),
        "drmReady": DeviceAttribute(bool_=False),  # no DRM nodes are given to containers
        "vfioReady": DeviceAttribute(bool_=False),  # only the device for virtual machines is
        "cudaComputeCapability": DeviceAttribute(version=f"{major}.{minor}.0"),
        "cudaDriverVersion": DeviceAttribute(version=f"{cuda_major}.{cuda_minor}.0"),
        "driverVersion": DeviceAttribute(version=driver) if driver else None,
    }
    return {name: attribute for name, attribute in known.items() if attribute} | where(gpu) | around(gpu.surroundings)


def _contents(profile: MigProfileFacts) -> Contents:
    return Contents(
        memory=profile.memory,
        multiprocessors=profile.multiprocessors,
        copy_engines=profile.copy_engines,
        decoders=profile.decoders,
        encoders=profile.encoders,
        jpeg_engines=profile.jpeg_engines,
        ofa_engines=profile.ofa_engines,
    )
