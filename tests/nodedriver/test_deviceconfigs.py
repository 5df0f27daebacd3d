"""Kinds of documents and the devices they are for, NVIDIA's spelling of them, and whatever else comes in."""

import re
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as some

from dra.objects import DeviceAllocationConfiguration
from nodedriver.configfields import DeviceConfigError
from nodedriver.deviceconfigs import ConfigRules, sharing_of
from nodedriver.facts import DeviceType
from nodedriver.gpuconfig import GpuConfig, Interval, Strategy
from tests.nodedriver.claims import DRIVER, given, gpu_config, mig_config, mps, of_claim, of_class

MIB = 1024 * 1024
MIG = "gpu-0-mig-3g40gb-0"
RULES, BOTH = ConfigRules(DRIVER), ConfigRules(DRIVER, nvidia=True)
MPS = GpuConfig(strategy=Strategy.MPS)
HALF = mig_config({"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 50}})
TEXTS = some.text(max_size=8) | some.sampled_from(["GpuConfig", "MPS", "sharing", "strategy", "mpsConfig", "8Gi"])
JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | TEXTS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def of_mig(*entries: DeviceAllocationConfiguration, rules: ConfigRules = RULES) -> GpuConfig:
    return sharing_of(given(MIG), DeviceType.MIG, entries, rules)


def of_card(*entries: DeviceAllocationConfiguration, rules: ConfigRules = RULES) -> GpuConfig:
    return sharing_of(given("gpu-0"), DeviceType.PHYSICAL, entries, rules)


def nvidia(kind: str = "GpuConfig", **sharing: Any) -> DeviceAllocationConfiguration:
    return of_claim({"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, "sharing": sharing})


def test_a_mig_device_is_shared_as_its_own_kind_says() -> None:
    assert of_mig() == GpuConfig()
    assert of_mig(of_claim(mig_config())) == GpuConfig()
    assert of_mig(of_class(mig_config({"strategy": "MPS"}))) == MPS
    assert of_mig(of_class(HALF)) == GpuConfig(strategy=Strategy.MPS, thread_percentage=50)


@pytest.mark.parametrize("device_type", [DeviceType.PHYSICAL, DeviceType.TIME_SLICED])
def test_a_mig_device_config_does_not_go_with_a_whole_card(device_type: DeviceType) -> None:
    with pytest.raises(DeviceConfigError, match="'MigDeviceConfig' does not go with gpu-0, a device of type"):
        sharing_of(given("gpu-0"), device_type, [of_claim(mig_config())], RULES)


def test_a_gpu_config_does_not_go_with_a_mig_device() -> None:
    sentence = (
        f"GpuConfig of the DeviceClass: kind: 'GpuConfig' does not go with {MIG}, a device of type MIG: use "
        "MigDeviceConfig"
    )
    with pytest.raises(DeviceConfigError, match=re.escape(sentence)):
        of_mig(of_class(mps(25)), of_claim(HALF))


def test_one_source_may_speak_of_several_types() -> None:
    """A class of whole cards and MIG devices says something of each; what the device is decides."""
    entries = of_class(mps(25)), of_class(HALF)
    assert of_card(*entries) == GpuConfig(strategy=Strategy.MPS, thread_percentage=25)
    assert of_mig(*entries) == GpuConfig(strategy=Strategy.MPS, thread_percentage=50)
    with pytest.raises(DeviceConfigError, match="MigDeviceConfig of the ResourceClaim: kind"):
        of_card(*entries, of_claim(HALF))


def test_a_mig_device_has_no_time_slice_to_set() -> None:
    entry = of_claim(mig_config({"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}))
    with pytest.raises(DeviceConfigError, match=r"sharing\.timeSlicingConfig is not a known field"):
        of_mig(entry)


def test_nvidias_spelling_is_read_only_when_told() -> None:
    with pytest.raises(DeviceConfigError, match=r"'resource\.nvidia\.com/v1beta1' is not allowed; use resource"):
        of_card(nvidia(strategy="MPS"))
    assert of_card(nvidia(strategy="MPS"), rules=BOTH) == MPS
    assert of_card(of_class(gpu_config({"strategy": "MPS"})), rules=BOTH) == MPS
    assert of_mig(nvidia("MigDeviceConfig", strategy="MPS"), rules=BOTH) == MPS
    sliced = nvidia(strategy="TimeSlicing", timeSlicingConfig={"interval": "Long"})
    assert of_card(sliced, rules=BOTH) == GpuConfig(strategy=Strategy.TIME_SLICING, interval=Interval.LONG)


NVIDIA_LIMITS: dict[str, tuple[dict[str, Any], GpuConfig]] = {
    "all of it": (
        {"defaultActiveThreadPercentage": 50, "defaultPinnedDeviceMemoryLimit": "8Gi", "multiUser": True},
        GpuConfig(strategy=Strategy.MPS, thread_percentage=50, memory_limit=8192 * MIB),
    ),
    "by device before that for all": (
        {"defaultPinnedDeviceMemoryLimit": "8Gi", "defaultPerDevicePinnedMemoryLimit": {"0": "4Gi"}},
        GpuConfig(strategy=Strategy.MPS, memory_limit=4096 * MIB),
    ),
    "by no device": ({"defaultPerDevicePinnedMemoryLimit": {}}, MPS),
}
NVIDIA_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one user": (
        {"multiUser": False},
        "sharing.mpsConfig.multiUser: False can't be had: pods of different users share a card here",
    ),
    "a second device": (
        {"defaultPerDevicePinnedMemoryLimit": {"0": "4Gi", "1": "4Gi"}},
        "sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit: '1' is not a device of this daemon, which serves one",
    ),
    "no quantity": (
        {"defaultPerDevicePinnedMemoryLimit": {"0": "much"}},
        "sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit.0: 'much' is not a quantity such as 8Gi",
    ),
    "no object": ({"defaultPerDevicePinnedMemoryLimit": "4Gi"}, "PinnedMemoryLimit: '4Gi' is not an object"),
}


@pytest.mark.parametrize(("limits", "config"), NVIDIA_LIMITS.values(), ids=NVIDIA_LIMITS)
def test_nvidias_limits(limits: dict[str, Any], config: GpuConfig) -> None:
    assert of_card(nvidia(strategy="MPS", mpsConfig=limits), rules=BOTH) == config
    assert of_mig(nvidia("MigDeviceConfig", strategy="MPS", mpsConfig=limits), rules=BOTH) == config


@pytest.mark.parametrize(("limits", "sentence"), NVIDIA_REFUSED.values(), ids=NVIDIA_REFUSED)
def test_nvidias_limits_that_can_not_be_had(limits: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeviceConfigError, match=re.escape(sentence)):
        of_card(nvidia(strategy="MPS", mpsConfig=limits), rules=BOTH)


def spoilt(document: dict[str, Any], path: list[str], value: object) -> dict[str, Any]:
    """The document with something else at the end of a path, as far as the path leads."""
    name, *rest = path
    inner = document.get(name)
    return {**document, name: spoilt(inner, rest, value) if rest and isinstance(inner, dict) else value}


PATHS = (
    "apiVersion", "kind", "x", "sharing", "sharing/strategy", "sharing/x", "sharing/timeSlicingConfig",
    "sharing/timeSlicingConfig/interval", "sharing/mpsConfig", "sharing/mpsConfig/x", "sharing/mpsConfig/multiUser",
    "sharing/mpsConfig/defaultActiveThreadPercentage", "sharing/mpsConfig/defaultPinnedDeviceMemoryLimit",
    "sharing/mpsConfig/defaultPerDevicePinnedMemoryLimit",
)  # fmt: skip


@examples(path=some.sampled_from(PATHS), value=JSON, strategy=some.sampled_from(["MPS", "TimeSlicing"]))
def test_whatever_comes_in_is_a_config_or_a_short_refusal(path: str, value: object, strategy: str) -> None:
    """No other error, and no limit out of bounds, for a document with anything at all in one of its places."""
    own = {**mps(25, "8Gi"), "sharing": {"strategy": strategy, **({"mpsConfig": {}} if strategy == "MPS" else {})}}
    theirs = {**own, "apiVersion": "resource.nvidia.com/v1beta1"}
    for document in (own, theirs):
        config, refusal = answer_to(spoilt(document, path.split("/"), value))
        assert len(refusal) < 400
        assert 1 <= (config.thread_percentage or 1) <= 100
        assert (config.memory_limit or MIB) >= MIB


def answer_to(document: dict[str, Any]) -> tuple[GpuConfig, str]:
    try:
        return of_card(of_claim(document), rules=BOTH), ""
    except DeviceConfigError as refusal:
        return GpuConfig(), str(refusal)


@examples(percentage=some.integers(1, 100), mebibytes=some.integers(1, 10**9))
def test_every_limit_within_bounds_is_read_as_written(percentage: int, mebibytes: int) -> None:
    expected = GpuConfig(strategy=Strategy.MPS, thread_percentage=percentage, memory_limit=mebibytes * MIB)
    assert of_card(of_class(mps(percentage, f"{mebibytes}Mi"))) == expected
