"""What a claim's status says of its devices: conditions with their times, data, and what is worth a write."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from dra.names import ClaimUID
from dra.objects import AllocatedDeviceStatus, Condition
from nodedriver.devicestatus import (
    Around,
    allocated,
    failed_statuses,
    interrupted_statuses,
    says_ready,
    says_the_same,
    statuses_of,
    told_by,
)
from nodedriver.facts import DeviceType, MigPlacement, PciAddress, Vendor
from nodedriver.gpuconfig import MpsLimits
from nodedriver.health.ailments import Ailment, Cause
from nodedriver.health.xids import Severity
from nodedriver.holding import Checkpoint, ClaimState, PreparedClaim, PreparedDevice
from nodedriver.sightings import Sight
from tests.nodedriver.claims import given

CARD = PciAddress("0000:17:00.0")
PREPARED, NOW, LATER = "2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z", "2026-01-01T10:00:00Z"
HALF, QUARTER = MpsLimits(thread_percentage=50, memory_limit=2**30), MpsLimits(thread_percentage=25, memory_limit=2**29)
MPS_FAULT = Ailment(gpu=CARD, cause=Cause.MPS, severity=Severity.APPLICATION, since=NOW)
SILENT = replace(MPS_FAULT, state="supervisor-silent")
ECC = Ailment(gpu=CARD, cause=Cause.XID, severity=Severity.RESET, since=NOW, code=48)
WHOLE = PreparedDevice(device_request="gpu", pool="node-1", device="gpu-0", gpu=CARD, uuid="GPU-1", cdi_device_id="cdi")
SHARED = replace(WHOLE, share=50, mps=HALF, share_id="s-50")
SMALLER = replace(WHOLE, share=25, mps=QUARTER, share_id="s-25")
SLICED = replace(WHOLE, device="gpu-0-timesliced", type=DeviceType.TIME_SLICED, slots=3, slot_count=10)
INSTANCE = replace(WHOLE, device="gpu-0-mig", type=DeviceType.MIG, placement=MigPlacement(9, 0, 4), uuid="MIG-1")
PASSED, AMD = replace(WHOLE, type=DeviceType.VFIO), replace(WHOLE, vendor=Vendor.AMD)
UNSEEN = (PASSED, AMD)
ADMIN = replace(SHARED, admin_access=True)


def claim(*devices: PreparedDevice, uid: str = "a") -> PreparedClaim:
    return PreparedClaim(
        namespace="t", name=uid, uid=ClaimUID(uid), state=ClaimState.COMPLETED, devices=devices, prepared_at=PREPARED
    )


def around(
    *claims: PreparedClaim,
    now: str = NOW,
    ailing: Sequence[Ailment] = (),
    sight: Sight | None = None,
    protocol: int = 2,
) -> Around:
    return Around(
        driver_name="gpu.portico.dev",
        checkpoint=Checkpoint(boot_id="b", claims={each.uid: each for each in claims}),
        ailing=lambda _gpu, _placement: ailing,
        seen=lambda _uid, _cdi: sight,
        protocol=lambda _uuid: protocol,
        now=now,
    )


def conditions(status: AllocatedDeviceStatus) -> list[tuple[str, str, str]]:
    return [(each.type, each.status, each.reason) for each in status.conditions]


READY = ("Ready", "True", "Prepared")
# The device, who else is on the card, what ails it; its conditions, and its data beside mode and uuid.
ROWS: dict[str, tuple[PreparedDevice, list[PreparedDevice], list[Ailment], list[Any], dict[str, Any]]] = {
    "whole": (WHOLE, [], [], [READY], {"enforcedBy": "None"}),
    "whole, ailing": (WHOLE, [], [ECC], [READY], {"enforcedBy": "None"}),
    "MIG": (INSTANCE, [], [], [READY], {"enforcedBy": "None"}),
    "VFIO": (PASSED, [], [], [READY], {"enforcedBy": "None"}),
    "a card of another vendor": (AMD, [], [], [READY], {"enforcedBy": "None"}),
    "time slices": (
        SLICED, [], [],
        [READY, ("ShareEnforced", "False", "None")],
        {"enforcedBy": "None", "sharing": "TimeSlicing", "slots": 3},
    ),
    "a share, alone": (
        SHARED, [], [],
        [READY, ("MpsReady", "True", "DaemonReady"), ("ShareEnforced", "True", "Server")],
        {"enforcedBy": "Server", "sharing": "MPS", "sharePercent": 50, "activeThreadPercentage": 50,
         "pinnedDeviceMemoryLimit": "1Gi"},
    ),
    "a share beside a larger one": (
        SMALLER, [SHARED], [],
        [READY, ("MpsReady", "True", "DaemonReady"), ("ShareEnforced", "False", "ClientEnvironment")],
        {"enforcedBy": "ClientEnvironment", "sharing": "MPS", "sharePercent": 25, "activeThreadPercentage": 25,
         "pinnedDeviceMemoryLimit": "512Mi"},
    ),
    "a share whose daemon failed": (
        SHARED, [], [ECC, MPS_FAULT],
        [READY, ("MpsReady", "False", "DaemonFault"), ("ShareEnforced", "True", "Server")],
        {"enforcedBy": "Server", "sharing": "MPS", "sharePercent": 50, "activeThreadPercentage": 50,
         "pinnedDeviceMemoryLimit": "1Gi"},
    ),
    "a share whose supervisor is gone": (
        SHARED, [], [SILENT],
        [READY, ("MpsReady", "Unknown", "SupervisorSilent"), ("ShareEnforced", "Unknown", "Unknown")],
        {"enforcedBy": "Unknown", "sharing": "MPS", "sharePercent": 50, "activeThreadPercentage": 50,
         "pinnedDeviceMemoryLimit": "1Gi"},
    ),
    "MPS without limits, whose supervisor is gone": (
        replace(WHOLE, mps=MpsLimits()), [], [SILENT],
        [READY, ("MpsReady", "Unknown", "SupervisorSilent"), ("ShareEnforced", "False", "None")],
        {"enforcedBy": "None", "sharing": "MPS", "sharePercent": 100},
    ),
    "MPS without limits": (
        replace(WHOLE, mps=MpsLimits()), [], [],
        [READY, ("MpsReady", "True", "DaemonReady"), ("ShareEnforced", "False", "None")],
        {"enforcedBy": "None", "sharing": "MPS", "sharePercent": 100},
    ),
    "admin access": (ADMIN, [SHARED], [MPS_FAULT], [READY], {"enforcedBy": "None"}),
}  # fmt: skip


@pytest.mark.parametrize(("device", "others", "ailing", "expected", "data"), ROWS.values(), ids=ROWS)
def test_what_is_told_of_a_device(
    device: PreparedDevice,
    others: list[PreparedDevice],
    ailing: list[Ailment],
    expected: list[tuple[str, str, str]],
    data: dict[str, Any],
) -> None:
    mine, theirs = claim(device), [claim(each, uid=f"o{number}") for number, each in enumerate(others)]
    (status,) = statuses_of(mine, (), around(mine, *theirs, ailing=ailing))
    assert (status.driver, status.pool, status.device) == ("gpu.portico.dev", "node-1", device.device)
    assert conditions(status) == expected
    seen = {} if device.admin_access or device in UNSEEN else {"lastProcessSeen": ""}
    assert status.data == {"mode": device.type.value, "uuid": device.uuid} | seen | data


def test_where_nobody_tells_of_a_daemon_the_status_says_since_when_and_where_to_look() -> None:
    (told,) = statuses_of(claim(SHARED), (), around(claim(SHARED), ailing=[SILENT]))
    assert told.conditions[1].message == (
        "the MPS supervisor has not answered since 2026-01-01T09:00:00Z, so nobody can tell how its MPS daemon is: see "
        "whether the supervisor's pod (nodedriver.mpsd) runs on the node, and what its log says"
    )


def test_a_share_with_a_namespace_is_enforced_beside_a_larger_one() -> None:
    small, large = claim(SMALLER), claim(SHARED, uid="b")
    (told,) = statuses_of(small, (), around(small, large, protocol=3))
    assert conditions(told)[2] == ("ShareEnforced", "True", "Server")
    assert told.data is not None
    assert told.data["enforcedBy"] == "Server"


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    small, large = claim(SMALLER), claim(SHARED, uid="b")
    (alone,) = statuses_of(small, (), around(small))
    (beside,) = statuses_of(small, (alone,), around(small, large, now=LATER))
    (again,) = statuses_of(small, (beside,), around(small, large, now="2026-01-01T11:00:00Z"))
    times = [[each.last_transition_time for each in status.conditions] for status in (alone, beside, again)]
    assert times == [[PREPARED, NOW, NOW], [PREPARED, NOW, LATER], [PREPARED, NOW, LATER]]


def test_a_failure_is_told_and_its_end_too() -> None:
    result = given("gpu-0", 50)
    (failed,) = failed_statuses([result], (), "the card is busy", NOW)
    assert (failed.device, failed.share_id) == ("gpu-0", result.share_id)
    assert failed.conditions == (
        Condition(type="Ready", status="False", reason="PrepareFailed", message="the card is busy",
                  last_transition_time=NOW),
    )  # fmt: skip
    (still,) = failed_statuses([result], (failed,), "x" * 2000, LATER)
    assert still.conditions[0].last_transition_time == NOW
    assert still.conditions[0].message == "x" * 1021 + "..."
    shared = replace(SHARED, share_id=result.share_id)
    (ready,) = statuses_of(claim(shared), (still,), around(claim(shared)))
    assert ready.conditions[0].last_transition_time == PREPARED


def test_what_a_reboot_interrupted_is_told_with_its_time() -> None:
    result = given("gpu-0", 50)
    shared = replace(SHARED, share_id=result.share_id)
    ready = statuses_of(claim(shared), (), around(claim(shared)))
    told = interrupted_statuses([result], ready, LATER)
    assert [conditions(each) for each in told] == [[("Ready", "Unknown", "NotPreparedSinceReboot")]]
    assert told[0].conditions[0].last_transition_time == LATER
    assert told[0].data is None
    assert [says_ready(each) for each in (ready, told, ())] == [True, False, False]


def test_the_last_process_is_told_and_kept() -> None:
    mine = claim(WHOLE)
    (seen,) = statuses_of(mine, (), around(mine, sight=Sight(NOW, running=True)))
    assert seen.data is not None
    assert seen.data["lastProcessSeen"] == NOW
    (kept,) = statuses_of(mine, (seen,), around(mine, now=LATER))
    assert says_the_same((seen,), (kept,))


EARLIER: list[dict[str, Any]] = [
    {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": PREPARED}]},
    {"data": {"enforcedBy": "Server", "lastProcessSeen": 17}},
    {"data": {}, "conditions": [{"type": "Old", "status": "Unknown"}], "networkData": {"interfaceName": "eth0"}},
    {"data": {"unknown": [1, 2]}},
]


@pytest.mark.parametrize("earlier", EARLIER)
def test_what_another_version_has_told_is_replaced(earlier: dict[str, Any]) -> None:
    told = msgspec.convert(
        {"driver": "gpu.portico.dev", "pool": "node-1", "device": "gpu-0"} | earlier, AllocatedDeviceStatus
    )
    mine = claim(WHOLE)
    assert statuses_of(mine, (told,), around(mine)) == statuses_of(mine, (), around(mine))


def test_order_has_no_meaning_and_content_has() -> None:
    both = statuses_of(claim(SHARED, INSTANCE), (), around(claim(SHARED, INSTANCE)))
    turned = tuple(msgspec.structs.replace(each, conditions=each.conditions[::-1]) for each in both[::-1])
    assert says_the_same(both, turned)
    assert not says_the_same(both, both[:1])
    assert not says_the_same(both, tuple(msgspec.structs.replace(each, data={"mode": "x"}) for each in both))


def test_what_others_write_beside_is_not_ours() -> None:
    (ours,) = statuses_of(claim(WHOLE), (), around(claim(WHOLE)))
    binding = Condition(type="gpu.portico.dev/mode", status="True", reason="Reset", last_transition_time=NOW)
    both = msgspec.structs.replace(ours, conditions=(binding, *ours.conditions))
    alone = msgspec.structs.replace(ours, conditions=(binding,), data=None, device="gpu-1")
    foreign = msgspec.structs.replace(ours, driver="nic.example.com")
    assert told_by("gpu.portico.dev", (both, alone, foreign)) == (ours,)


def test_what_is_not_allocated_any_more_is_not_told() -> None:
    mine = claim(replace(SHARED, pool="node-1", share_id=given("gpu-0", 50).share_id), replace(INSTANCE, pool="node-1"))
    statuses = statuses_of(mine, (), around(mine))
    results = [msgspec.structs.replace(given("gpu-0", 50), pool="node-1")]
    assert [each.device for each in allocated(statuses, results)] == ["gpu-0"]
    assert allocated(statuses, ()) == ()
