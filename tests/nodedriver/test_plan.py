"""The table of shares and strategies: one row per rule, with the numbers worked out by hand."""

import re

import pytest
from hypothesis import given as examples
from hypothesis import strategies as some
from msgspec.structs import replace

from dra.objects import DeviceRequestAllocationResult, JsonObject, ResourceClaim
from nodedriver.facts import DeviceType, MigPlacement, PciAddress
from nodedriver.gpuconfig import Interval, MpsLimits
from nodedriver.inventory import DeviceRecord
from nodedriver.plan import PlanRefusal, PlanRules, PreparePlan, plan_claim
from tests.nodedriver.claims import (
    DRIVER,
    NODE,
    allocated,
    given,
    given_slots,
    gpu_config,
    mig_config,
    mps,
    of_claim,
    of_class,
    time_slicing,
)

MIB = 1024 * 1024
AMOUNTS = (
    some.text(max_size=6)
    | some.integers(-(10**20), 10**20).map(str)
    | some.tuples(some.integers(-200, 200), some.sampled_from(["", "m", "k", "Mi", "Gi", "Ti", "e3"])).map(
        lambda parts: "".join(map(str, parts))
    )
)
H100 = 81559 * MIB  # what NVML reports for an H100 80GB
PART = 40448 * MIB  # 3g.40gb on it
RULES = PlanRules(driver_name=DRIVER, pool=NODE, mps_reserve=512 * MIB)
CARD = PciAddress("0000:17:00.0")
RECORDS = {
    "gpu-0": DeviceRecord(name="gpu-0", type=DeviceType.PHYSICAL, gpu=CARD, placement=None, memory=H100),
    "gpu-1": DeviceRecord(
        name="gpu-1", type=DeviceType.PHYSICAL, gpu=PciAddress("0000:2a:00.0"), placement=None, memory=H100
    ),
    "gpu-0-timesliced": DeviceRecord(
        name="gpu-0-timesliced", type=DeviceType.TIME_SLICED, gpu=CARD, placement=None, memory=H100, slots=4
    ),
    "gpu-0-mig-3g40gb-0": DeviceRecord(
        name="gpu-0-mig-3g40gb-0", type=DeviceType.MIG, gpu=CARD, placement=MigPlacement(9, 0, 4), memory=PART
    ),
}

HALF_OF_MIG = mig_config({"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 50}})
MPS_8G: JsonObject = {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "8Gi"}}

# (81559 - 512) MiB = 81047 MiB, of which 25 % are 20261.75; (40448 - 512) = 39936, of which 50 % are 19968.
LIMITS: dict[str, tuple[ResourceClaim, MpsLimits | None]] = {
    "whole, server without shares": (allocated(given("gpu-0")), None),
    "whole": (allocated(given("gpu-0", 100)), None),
    "whole with memory": (allocated(given("gpu-0", 100, memory="40Gi")), None),
    "whole, empty config": (allocated(given("gpu-0", 100), config=(of_claim(gpu_config()),)), None),
    "whole under MPS": (allocated(given("gpu-0", 100), config=(of_class(mps()),)), MpsLimits()),
    "whole under MPS with limits": (
        allocated(given("gpu-0", 100), config=(of_class(mps(50)), of_claim(mps(memory="8Gi")))),
        MpsLimits(thread_percentage=50, memory_limit=8192 * MIB),
    ),
    "whole under MPS, memory asked": (
        allocated(given("gpu-0", 100, memory="4Gi"), config=(of_class(mps(memory="8Gi")),)),
        MpsLimits(memory_limit=4096 * MIB),
    ),
    "25 % without config": (
        allocated(given("gpu-0", 25)),
        MpsLimits(thread_percentage=25, memory_limit=20261 * MIB),
    ),
    "25 % under MPS": (
        allocated(given("gpu-0", 25), config=(of_class(mps(25)),)),
        MpsLimits(thread_percentage=25, memory_limit=20261 * MIB),
    ),
    "config tightens threads": (
        allocated(given("gpu-0", 25), config=(of_claim(mps(10)),)),
        MpsLimits(thread_percentage=10, memory_limit=20261 * MIB),
    ),
    "config can't raise": (
        allocated(given("gpu-0", 25), config=(of_claim(mps(90, "60Gi")),)),
        MpsLimits(thread_percentage=25, memory_limit=20261 * MIB),
    ),
    "config tightens memory": (
        allocated(given("gpu-0", 25), config=(of_claim(mps(memory="8Gi")),)),
        MpsLimits(thread_percentage=25, memory_limit=8192 * MIB),
    ),
    "memory asked tightens": (
        allocated(given("gpu-0", 25, memory="10Gi")),
        MpsLimits(thread_percentage=25, memory_limit=10240 * MIB),
    ),
    "memory between share of total and share of the rest": (
        allocated(given("gpu-0", 25, memory="20300Mi")),
        MpsLimits(thread_percentage=25, memory_limit=20261 * MIB),
    ),
    "memory in whole MiB": (
        allocated(given("gpu-0", 25, memory="1500Ki")),
        MpsLimits(thread_percentage=25, memory_limit=MIB),
    ),
    "half of a MIG instance": (
        allocated(given("gpu-0-mig-3g40gb-0", 50)),
        MpsLimits(thread_percentage=50, memory_limit=19968 * MIB),
    ),
    "MIG whole under MPS with limits": (
        allocated(given("gpu-0-mig-3g40gb-0", 100), config=(of_class(HALF_OF_MIG), of_claim(mig_config(MPS_8G)))),
        MpsLimits(thread_percentage=50, memory_limit=8192 * MIB),
    ),
    "config tightens half of a MIG instance": (
        allocated(given("gpu-0-mig-3g40gb-0", 50), config=(of_claim(mig_config(MPS_8G)),)),
        MpsLimits(thread_percentage=50, memory_limit=8192 * MIB),
    ),
    "whole under MPS, limit beyond the device": (
        allocated(given("gpu-0", 100), config=(of_class(mps(memory="1Ei")),)),
        MpsLimits(memory_limit=H100),
    ),
    "MIG whole": (allocated(given("gpu-0-mig-3g40gb-0", 100)), None),
    "admin access ignores shares and config": (
        allocated(given("gpu-0", 25, admin=True), config=(of_claim({"nonsense": 1}),)),
        None,
    ),
}

# What the time slice of the card is set to, None: it stays; and how many slots are taken.
TIMES: dict[str, tuple[ResourceClaim, tuple[Interval | None, int]]] = {
    "whole": (allocated(given("gpu-0", 100)), (None, 0)),
    "whole, default interval": (allocated(given("gpu-0", 100), config=(of_class(time_slicing()),)), (None, 0)),
    "whole, long": (allocated(given("gpu-0", 100), config=(of_claim(time_slicing("Long")),)), (Interval.LONG, 0)),
    "whole, the class binds": (
        allocated(given("gpu-0", 100), config=(of_class(time_slicing("Short")), of_claim(time_slicing("Long")))),
        (Interval.SHORT, 0),
    ),
    "one slot by default": (allocated(given("gpu-0-timesliced")), (None, 1)),
    "three slots": (allocated(given_slots("gpu-0-timesliced", 3), config=(of_class(time_slicing()),)), (None, 3)),
    "all slots, medium": (
        allocated(given_slots("gpu-0-timesliced", 4), config=(of_claim(time_slicing("Medium")),)),
        (Interval.MEDIUM, 4),
    ),
}


@pytest.mark.parametrize(("claim", "times"), TIMES.values(), ids=TIMES)
def test_times(claim: ResourceClaim, times: tuple[Interval | None, int]) -> None:
    plan = plan_claim(claim, RECORDS, RULES)
    assert isinstance(plan, PreparePlan), plan
    assert [(device.interval, device.slots) for device in plan.devices] == [times]
    assert plan.devices[0].mps is None


REFUSED: dict[str, tuple[ResourceClaim, str]] = {
    "share with time slicing": (
        allocated(given("gpu-0", 25), config=(of_class(time_slicing()),)),
        "device request 'gpu' (25 % of gpu-0): sharePercent 25 and sharing.strategy TimeSlicing exclude each other",
    ),
    "MIG with time slicing": (
        allocated(given("gpu-0-mig-3g40gb-0", 100), config=(of_class(mig_config({"strategy": "TimeSlicing"})),)),
        "sharing.strategy TimeSlicing has no effect on a MIG device, since the time slice is a setting of a whole card",
    ),
    "slots under MPS": (
        allocated(given_slots("gpu-0-timesliced", 2), config=(of_class(mps()),)),
        "(2 of 4 slots of gpu-0-timesliced): sharing.strategy MPS does not go with a time-sliced device",
    ),
    "some slots with an interval": (
        allocated(given_slots("gpu-0-timesliced", 3), config=(of_claim(time_slicing("Long")),)),
        "interval Long would change the time slice of all who share the card: leave it out, or ask for all 4 slots",
    ),
    "more slots than there are": (
        allocated(given_slots("gpu-0-timesliced", 5)),
        "device request 'gpu': slots '5' is not a whole number from 1 to 4",
    ),
    "two shares in one request": (
        allocated(given("gpu-0", 25), given("gpu-1", 25)),
        "'gpu' was given 2 devices under MPS (25 % of gpu-0, 25 % of gpu-1): a process has one MPS pipe directory",
    ),
    "two whole cards under MPS": (
        allocated(given("gpu-0", 100), given("gpu-1", 100), config=(of_class(mps()),)),
        "was given 2 devices under MPS (100 % of gpu-0, 100 % of gpu-1)",
    ),
    "more memory than the share": (
        allocated(given("gpu-0", 25, memory="30Gi")),
        "memory 30Gi is more than the share covers (25 % of 81559Mi is 20389Mi): ask for 40 %, or for at most 20389Mi",
    ),
    "more memory than the device": (
        allocated(given("gpu-0-mig-3g40gb-0", 25, memory="60Gi")),
        "ask for a larger device, or for at most 10112Mi",
    ),
    "bad config": (
        allocated(given("gpu-0", 25), config=(of_claim(gpu_config({"strategy": "None"})),)),
        "GpuConfig of the ResourceClaim: sharing.strategy: 'None' is not allowed; use TimeSlicing or MPS",
    ),
    "unknown device": (
        allocated(given("gpu-9")),
        "device node-1/gpu-9 is not a device of this node (node-1), or not any more",
    ),
    "share out of bounds": (allocated(given("gpu-0", 101)), "sharePercent '101' is not a whole number from 1 to 100"),
    "nothing of ours": (allocated(), "the allocation of ml-team/claim holds no device of driver gpu.portico.dev"),
}


@pytest.mark.parametrize(("claim", "limits"), LIMITS.values(), ids=LIMITS)
def test_limits(claim: ResourceClaim, limits: MpsLimits | None) -> None:
    plan = plan_claim(claim, RECORDS, RULES)
    assert isinstance(plan, PreparePlan), plan
    assert [device.mps for device in plan.devices] == [limits]


@pytest.mark.parametrize(("claim", "sentence"), REFUSED.values(), ids=REFUSED)
def test_refuses(claim: ResourceClaim, sentence: str) -> None:
    plan = plan_claim(claim, RECORDS, RULES)
    assert isinstance(plan, PlanRefusal), plan
    assert re.search(re.escape(sentence), plan.reason), plan.reason


def test_two_whole_cards_need_no_daemon() -> None:
    plan = plan_claim(allocated(given("gpu-1", 100), given("gpu-0", 100)), RECORDS, RULES)
    assert isinstance(plan, PreparePlan)
    assert [device.record.name for device in plan.devices] == ["gpu-1", "gpu-0"]


def test_shares_for_two_device_requests_are_two_pipes_for_two_containers() -> None:
    claim = allocated(given("gpu-0", 25, request="one"), given("gpu-1", 50, request="two/small"))
    plan = plan_claim(claim, RECORDS, RULES)
    assert isinstance(plan, PreparePlan)
    assert [(d.device_request, d.share, d.share_id) for d in plan.devices] == [
        ("one", 25, "00000000-0000-4000-8000-000000000025"),
        ("two", 50, "00000000-0000-4000-8000-000000000050"),
    ]


def test_no_memory_left_for_a_share() -> None:
    small = {"gpu-0": DeviceRecord(name="gpu-0", type=DeviceType.PHYSICAL, gpu=CARD, placement=None, memory=600 * MIB)}
    rules = PlanRules(driver_name=DRIVER, pool=NODE, mps_reserve=599 * MIB)
    plan = plan_claim(allocated(given("gpu-0", 50)), small, rules)
    assert isinstance(plan, PlanRefusal)
    assert "no memory is left of its 600Mi after the 599Mi that the driver keeps for contexts" in plan.reason


def test_a_device_of_another_nodes_pool_is_refused() -> None:
    plan = plan_claim(allocated(given("gpu-0")), RECORDS, PlanRules(driver_name=DRIVER, pool="node-2", mps_reserve=0))
    assert plan == PlanRefusal(
        "device node-1/gpu-0 is not a device of this node (node-2), or not any more: "
        "delete the pod, so that another device is allocated"
    )


# Consumed capacities that no scheduler of today writes; what becomes of each, in words.
ABSURD = {
    "no share": ({"sharePercent": "0"}, "sharePercent '0' is not a whole number from 1 to 100"),
    "a negative share": ({"sharePercent": "-25"}, "sharePercent '-25' is not a whole number from 1 to 100"),
    "half a percent": ({"sharePercent": "500m"}, "sharePercent '500m' is not a whole number from 1 to 100"),
    "one percent and a half": ({"sharePercent": "1.5"}, "sharePercent '1.5' is not a whole number from 1 to 100"),
    "beyond all": ({"sharePercent": "1Ei"}, "sharePercent '1Ei' is not a whole number from 1 to 100"),
    "no number": ({"sharePercent": "much"}, "consumed sharePercent 'much' is not a quantity"),
    "nothing": ({"sharePercent": ""}, "consumed sharePercent '' is not a quantity"),
    "very long": ({"sharePercent": "9" * 5000}, f"consumed sharePercent '{'9' * 79}… is not a quantity"),
    "negative memory": ({"sharePercent": "25", "memory": "-1Gi"}, "(25 % of gpu-0): memory '-1Gi' is less than 1Mi"),
    "a byte": ({"sharePercent": "25", "memory": "1"}, "(25 % of gpu-0): memory '1' is less than 1Mi"),
    "a byte for the whole": ({"sharePercent": "100", "memory": "1"}, "memory '1' is less than 1Mi"),
    "all memory of the world": ({"sharePercent": "25", "memory": "7Ei"}, "memory 7Ei is more than the share covers"),
    "memory is no number": ({"sharePercent": "25", "memory": "8 GB"}, "consumed memory '8 GB' is not a quantity"),
}


@pytest.mark.parametrize(("consumed", "sentence"), ABSURD.values(), ids=ABSURD)
def test_absurd_amounts_are_refused_in_a_sentence(consumed: dict[str, str], sentence: str) -> None:
    refusal = plan_claim(allocated(consuming(consumed)), RECORDS, RULES)
    assert isinstance(refusal, PlanRefusal), refusal
    assert sentence in refusal.reason
    assert len(refusal.reason) < 400


def consuming(consumed: dict[str, str]) -> DeviceRequestAllocationResult:
    return replace(given("gpu-0"), consumed_capacity=consumed)


@examples(share=AMOUNTS, memory=AMOUNTS)
def test_whatever_was_consumed_is_held_within_the_device_or_refused(share: str, memory: str) -> None:
    plan = plan_claim(allocated(consuming({"sharePercent": share, "memory": memory})), RECORDS, RULES)
    if isinstance(plan, PlanRefusal):
        assert "device request 'gpu'" in plan.reason
        return
    (device,) = plan.devices
    assert 1 <= device.share <= 100
    assert (device.mps is None) == (device.share == 100)
    if device.mps:
        assert device.mps.thread_percentage == device.share
        assert MIB <= (device.mps.memory_limit or 0) <= H100 * device.share // 100


@examples(
    memory=some.integers(1024 * MIB, 200_000 * MIB),
    reserve=some.integers(0, 1024 * MIB),
    shares=some.lists(some.integers(1, 19).map(lambda step: step * 5), min_size=1, max_size=20),
)
def test_limits_of_a_full_card_never_exceed_it(memory: int, reserve: int, shares: list[int]) -> None:
    """Whatever shares fill a card to at most 100 %, memory limits fit beside the reserve and percentages sum to 100."""
    record = DeviceRecord(name="gpu-0", type=DeviceType.PHYSICAL, gpu=CARD, placement=None, memory=memory)
    rules = PlanRules(driver_name=DRIVER, pool=NODE, mps_reserve=reserve)
    fitting = [share for i, share in enumerate(shares) if sum(shares[: i + 1]) <= 100]
    plans = [plan_claim(allocated(given("gpu-0", share)), {"gpu-0": record}, rules) for share in fitting]
    limits = [device.mps for plan in plans if isinstance(plan, PreparePlan) for device in plan.devices]
    assert sum(limit.memory_limit or memory for limit in limits if limit) <= max(memory - reserve, 0)
    assert sum(limit.thread_percentage or 100 for limit in limits if limit) <= 100
    assert None not in limits
