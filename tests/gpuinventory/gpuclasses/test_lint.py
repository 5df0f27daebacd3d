"""What the editor says of selectors: whom they take, on whom they fail and how to guard that."""

from __future__ import annotations

import pytest

from gpuinventory.gpuclasses import FindingCode, check
from gpuinventory.gpuclasses.lint import Finding
from tests.gpuinventory.gpuclasses.drivers import DEVICES, EXAMPLE, NVIDIA, fleet_of, of_driver

FLEET = fleet_of(*DEVICES)
PROFILE = 'device.attributes["gpu.nvidia.com"].profile'
GPU_0 = "gpu.nvidia.com/node-gpu.nvidia.com/gpu-0"


def test_matches_are_counted_by_kind() -> None:
    found = check([of_driver(NVIDIA), 'device.attributes["gpu.nvidia.com"].type == "gpu"'], FLEET)

    assert (found.devices, found.total, found.findings) == (2, 13, ())
    (kind,) = found.taken
    assert (kind.traits.product and kind.traits.product.value, kind.devices) == ("NVIDIA A100-PCIE-40GB", 2)


def test_a_selector_that_fails_names_the_device_the_key_and_a_guard_that_helps() -> None:
    text = f'{of_driver(NVIDIA)} && {PROFILE} == "1g.5gb"'
    (finding,) = check([text], FLEET).findings

    assert finding == Finding(
        code=FindingCode.ABORTS,
        selector=1,
        error="no such key: profile",
        device=GPU_0,
        devices=2,
        key=PROFILE,
        guarded=f'{of_driver(NVIDIA)} && (has({PROFILE}) && {PROFILE} == "1g.5gb")',
    )
    guarded = check([finding.guarded], FLEET)
    assert (guarded.devices, guarded.findings) == (2, ())


def test_a_key_written_in_brackets_is_guarded_by_in() -> None:
    key = 'device.attributes["gpu.nvidia.com"]["profile"]'
    (finding,) = check([f'{of_driver(NVIDIA)} && {key} == "1g.5gb"'], FLEET).findings

    assert finding.guarded == (
        f'{of_driver(NVIDIA)} && ("profile" in device.attributes["gpu.nvidia.com"] && {key} == "1g.5gb")'
    )


def test_only_devices_that_reach_a_selector_count() -> None:
    mig = 'device.attributes["gpu.nvidia.com"].type == "mig"'

    assert check([of_driver(NVIDIA), mig, f'{PROFILE} == "1g.5gb"'], FLEET).findings == ()
    codes = [each.code for each in check([f'{PROFILE} == "1g.5gb"', of_driver(NVIDIA), mig], FLEET).findings]
    assert codes == [FindingCode.ABORTS]


def test_a_failure_that_is_no_missing_key_has_no_guard() -> None:
    (finding, _) = check(["1 / (size(device.driver) - size(device.driver)) == 1"], fleet_of(NVIDIA)).findings

    assert (finding.code, finding.key, finding.guarded, finding.devices) == (FindingCode.ABORTS, "", "", 4)


# Selectors, the findings by code and selector, and the number of matches.
ROWS = {
    "does not parse": (["device."], [(FindingCode.COMPILE, 1)], 0),
    "reads what is not there": (["device.name == 'a'"], [(FindingCode.COMPILE, 1)], 0),
    "the second is no bool": ([of_driver(NVIDIA), "1 + 1"], [(FindingCode.COMPILE, 2)], 0),
    "only the scheduler knows it yet": (["[1].includes(1)"], [(FindingCode.COMPILE, 1)], 0),
    "matches nothing": ([of_driver("gpu.nowhere.com")], [(FindingCode.NOTHING, 0)], 0),
    "matches whatever comes": (["true"], [(FindingCode.EVERYTHING, 0)], 13),
    "no selector at all": ([], [(FindingCode.EVERYTHING, 0)], 13),
    "several drivers": ([f"{of_driver(NVIDIA)} || {of_driver(EXAMPLE)}"], [(FindingCode.DRIVERS, 0)], 8),
    "one driver": ([of_driver(EXAMPLE)], [], 4),
    "one device by its uuid": (['device.attributes["gpu.example.com"].?uuid.orValue("") == "gpu-3"'], [], 1),
}


@pytest.mark.parametrize(("selectors", "findings", "devices"), ROWS.values(), ids=ROWS)
def test_findings(selectors: list[str], findings: list[tuple[FindingCode, int]], devices: int) -> None:
    found = check(selectors, FLEET)

    assert [(each.code, each.selector) for each in found.findings] == findings
    assert found.devices == devices


def test_a_selector_that_costs_too_much_is_refused_as_the_api_server_does() -> None:
    ids = 'device.attributes["gpu.example.com"]'
    text = f"{ids}.all(a, {ids}.all(b, {ids}.all(c, {ids}.all(d, true))))"
    (finding,) = check([text], FLEET).findings

    assert (finding.code, finding.selector, finding.blocking) == (FindingCode.COSTLY, 1, True)


def test_one_driver_alone_is_not_everything() -> None:
    assert check([of_driver(EXAMPLE)], fleet_of(EXAMPLE)).findings == ()
