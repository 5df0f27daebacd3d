"""What the kubelet is told of a device, by what ails its card."""

import pytest

from nodedriver.facts import PciAddress
from nodedriver.health.ailments import Ailment, Cause
from nodedriver.health.report import DeviceHealth, Wellness, health_of
from nodedriver.health.xids import Severity

SINCE = "2026-01-01T00:00:00Z"
DEAF = Ailment(
    gpu=PciAddress("0000:17:00.0"), cause=Cause.UNMONITORED, severity=Severity.INFORMATION, since=SINCE
)  # fmt: skip
LOST = Ailment(gpu=PciAddress("0000:17:00.0"), cause=Cause.LOST, severity=Severity.NODE, since=SINCE)

ASKING = Ailment(gpu=PciAddress("0000:17:00.0"), cause=Cause.RECOVERY, severity=Severity.RESET, since=SINCE)


def xid(code: int, severity: Severity) -> Ailment:
    return Ailment(gpu=PciAddress("0000:17:00.0"), cause=Cause.XID, severity=severity, since=SINCE, code=code)


REMAPPED, ECC = xid(63, Severity.INFORMATION), xid(48, Severity.RESET)
REMAPPED_TEXT = f"XID 63 (row remapped) since {SINCE}, asks for: information"
ECC_TEXT = f"XID 48 (double-bit ECC error) since {SINCE}, asks for: reset"
LOST_TEXT = f"gpu-lost since {SINCE}, asks for: node"
DEAF_TEXT = f"unmonitored since {SINCE}, asks for: information"


@pytest.mark.parametrize(
    ("ailments", "wellness", "message"),
    [
        ((), Wellness.HEALTHY, ""),
        ((REMAPPED,), Wellness.HEALTHY, REMAPPED_TEXT),
        ((ECC,), Wellness.UNHEALTHY, ECC_TEXT),
        ((LOST,), Wellness.UNHEALTHY, LOST_TEXT),
        ((ASKING,), Wellness.UNHEALTHY, f"recovery-action since {SINCE}, asks for: reset"),
        ((DEAF,), Wellness.UNKNOWN, DEAF_TEXT),
        ((DEAF, REMAPPED), Wellness.UNKNOWN, f"{DEAF_TEXT}; {REMAPPED_TEXT}"),
        ((DEAF, ECC), Wellness.UNHEALTHY, f"{DEAF_TEXT}; {ECC_TEXT}"),
    ],
)
def test_a_device_is_as_its_worst_ailment(ailments: tuple[Ailment, ...], wellness: Wellness, message: str) -> None:
    assert health_of("gpu-3", ailments) == DeviceHealth("gpu-3", wellness, message)
