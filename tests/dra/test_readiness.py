"""When the devices of a claim are ready: one row for each thing that a driver may say (isClaimReadyForBinding)."""

from typing import Any

import msgspec
import pytest

from dra.objects import ResourceClaim, decode
from dra.readiness import unready, waits_for_devices

READY, ATTACHED, FAILED = "x/ready", "x/attached", "x/failed"


def given(device: str, *conditions: str, share: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {"request": "r", "driver": "d", "pool": "p", "device": device}
    result |= {"bindingConditions": conditions, "bindingFailureConditions": [FAILED]} if conditions else {}
    return result | ({"shareID": share} if share else {})


def said(device: str, share: str = "", **conditions: str) -> dict[str, Any]:
    told = [{"type": f"x/{name}", "status": status} for name, status in conditions.items()]
    status: dict[str, Any] = {"driver": "d", "pool": "p", "device": device, "conditions": told}
    return status | ({"shareID": share} if share else {})


def claim(results: list[dict[str, Any]], *devices: dict[str, Any]) -> ResourceClaim:
    body = {"metadata": {"name": "c"}, "status": {"devices": devices, "allocation": {"devices": {"results": results}}}}
    return decode(msgspec.json.encode(body), ResourceClaim)


LATE = given("late", READY, ATTACHED)

ROWS = [
    pytest.param(claim([given("plain")]), None, id="nothing to wait for"),
    pytest.param(claim([LATE]), ("late", "", ""), id="the driver said nothing yet"),
    pytest.param(claim([LATE], said("other", ready="True", attached="True")), ("late", "", ""), id="of another device"),
    pytest.param(claim([LATE], said("late", ready="False")), ("late", "", READY), id="not ready"),
    pytest.param(claim([LATE], said("late", ready="Unknown")), ("late", "", READY), id="not known is not ready"),
    pytest.param(claim([LATE], said("late", ready="True")), ("late", "", ""), id="of the second nothing was said"),
    pytest.param(claim([LATE], said("late", ready="True", attached="False")), ("late", "", ATTACHED), id="not both"),
    pytest.param(claim([LATE], said("late", ready="True", attached="True", failed="False")), None, id="ready"),
    pytest.param(
        claim([LATE], said("late", ready="True", attached="True", failed="True")),
        ("late", FAILED, ""),
        id="a failure wins over what is ready",
    ),
    pytest.param(
        claim([LATE, given("second", READY)], said("second", failed="True")),
        ("late", "", ""),
        id="an earlier device that is not ready hides a later one that failed",
    ),
    pytest.param(
        claim([given("plain"), given("second", READY)], said("second", failed="True")),
        ("second", FAILED, ""),
        id="one that nobody waits for hides nothing",
    ),
    pytest.param(
        claim(
            [given("late", READY, share="a"), given("late", READY, share="b")],
            said("late", "a", ready="True"),
            said("late", "b", ready="False"),
        ),
        None,
        id="shares of a device have the answer of its first status",
    ),
]


@pytest.mark.parametrize(("resource_claim", "expected"), ROWS)
def test_the_first_device_that_is_not_ready(
    resource_claim: ResourceClaim, expected: tuple[str, str, str] | None
) -> None:
    found = unready(resource_claim)
    names = found and (
        found.device.device,
        found.failed.type if found.failed else "",
        found.said.type if found.said else "",
    )
    assert names == expected


def test_a_device_is_waited_for_also_when_it_is_ready() -> None:
    assert waits_for_devices(claim([given("plain"), LATE], said("late", ready="True", attached="True")))
    assert not waits_for_devices(claim([given("plain")]))
    assert not waits_for_devices(decode(b'{"metadata": {"name": "c"}}', ResourceClaim))
