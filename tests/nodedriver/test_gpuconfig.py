"""GpuConfig: one row per rule of reading, and of what holds when class and claim both speak."""

import re
from typing import Any

import pytest

from dra.objects import DeviceAllocationConfiguration
from nodedriver.configfields import DeviceConfigError
from nodedriver.deviceconfigs import GPU, ConfigRules, config_for
from nodedriver.gpuconfig import GpuConfig, Interval, Strategy
from tests.nodedriver.claims import DRIVER, given, gpu_config, mps, of_claim, of_class, time_slicing

READ = {
    "no sharing": (gpu_config(), GpuConfig()),
    "MPS alone": (mps(), GpuConfig(strategy=Strategy.MPS)),
    "percentage": (mps(25), GpuConfig(strategy=Strategy.MPS, thread_percentage=25)),
    "memory": (mps(memory="8Gi"), GpuConfig(strategy=Strategy.MPS, memory_limit=8589934592)),
    "memory as a JSON number": (
        gpu_config({"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": 1048576}}),
        GpuConfig(strategy=Strategy.MPS, memory_limit=1048576),
    ),
    "time slicing": (time_slicing(), GpuConfig(strategy=Strategy.TIME_SLICING, interval=Interval.DEFAULT)),
    "interval": (
        gpu_config({"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}),
        GpuConfig(strategy=Strategy.TIME_SLICING, interval=Interval.LONG),
    ),
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no kind": (
        {"apiVersion": "resource.gpu.portico.dev/v1alpha1"},
        "opaque parameters of the ResourceClaim: kind: nothing is not allowed; use GpuConfig or MigDeviceConfig",
    ),
    "unknown kind": (
        gpu_config(kind="PipelineConfig"),
        "opaque parameters of the ResourceClaim: kind: 'PipelineConfig' is not allowed; use GpuConfig or MigDevice",
    ),
    "kind is no text": (gpu_config(kind=["GpuConfig"]), "kind: ['GpuConfig'] is not allowed; use GpuConfig or Mig"),
    "no document": ({}, "apiVersion: nothing is not allowed; use resource.gpu.portico.dev/v1alpha1"),
    "other driver's version": (
        gpu_config(apiVersion="resource.nvidia.com/v1beta1"),
        "apiVersion: 'resource.nvidia.com/v1beta1' is not allowed; use resource.gpu.portico.dev/v1alpha1",
    ),
    "unknown field": (
        gpu_config(shareing={}),
        "shareing is not a known field; allowed here: apiVersion, kind, sharing",
    ),
    "unknown field in sharing": (
        gpu_config({"strategy": "MPS", "replicas": 4}),
        "sharing.replicas is not a known field; allowed here: strategy, timeSlicingConfig, mpsConfig",
    ),
    "unknown field in mpsConfig": (
        gpu_config({"strategy": "MPS", "mpsConfig": {"multiUser": True}}),
        "sharing.mpsConfig.multiUser is not a known field; allowed here: defaultActiveThreadPercentage, default",
    ),
    "unknown strategy": (
        gpu_config({"strategy": "mps"}),
        "sharing.strategy: 'mps' is not allowed; use TimeSlicing or MPS",
    ),
    "sharing without strategy": (gpu_config({}), "sharing.strategy: nothing is not allowed; use TimeSlicing or MPS"),
    "sharing is a text": ({**gpu_config(), "sharing": "MPS"}, "sharing: 'MPS' is not an object"),
    "null sharing": ({**gpu_config(), "sharing": None}, "sharing: None is not an object"),
    "limits of the other strategy": (
        gpu_config({"strategy": "TimeSlicing", "mpsConfig": {}}),
        "sharing.mpsConfig does not belong to sharing.strategy TimeSlicing: remove one of the two",
    ),
    "interval of the other strategy": (
        gpu_config({"strategy": "MPS", "timeSlicingConfig": {"interval": "Short"}}),
        "sharing.timeSlicingConfig does not belong to sharing.strategy MPS: remove one of the two",
    ),
    "unknown interval": (
        gpu_config({"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Tiny"}}),
        "sharing.timeSlicingConfig.interval: 'Tiny' is not allowed; use Default or Short or Medium or Long",
    ),
    "percentage 0": (mps(0), "defaultActiveThreadPercentage: 0 is not a whole number from 1 to 100"),
    "percentage 101": (mps(101), "defaultActiveThreadPercentage: 101 is not a whole number from 1 to 100"),
    "percentage as text": (
        gpu_config({"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": "25"}}),
        "defaultActiveThreadPercentage: '25' is not a whole number from 1 to 100",
    ),
    "percentage true": (
        gpu_config({"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": True}}),
        "defaultActiveThreadPercentage: True is not a whole number from 1 to 100",
    ),
    "percentage null": (
        gpu_config({"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": None}}),
        "defaultActiveThreadPercentage: None is not a whole number from 1 to 100",
    ),
    "memory no quantity": (mps(memory="8 GB"), "defaultPinnedDeviceMemoryLimit: '8 GB' is not a quantity such as 8Gi"),
    "a long value is cut": (
        gpu_config({"strategy": "x" * 9000}),
        f"sharing.strategy: 'x{'x' * 78}… is not allowed; use TimeSlicing or MPS",
    ),
    "a long name is cut": (
        {**gpu_config(), "y" * 9000: 1},
        f"GpuConfig of the ResourceClaim: {'y' * 80}… is not a known",
    ),
    "memory under 1Mi": (mps(memory="1000Ki"), "defaultPinnedDeviceMemoryLimit: '1000Ki' is less than 1Mi"),
    "memory negative": (mps(memory="-8Gi"), "defaultPinnedDeviceMemoryLimit: '-8Gi' is less than 1Mi"),
}

MIB_8 = 8 * 1024 * 1024
TOGETHER: dict[str, tuple[list[DeviceAllocationConfiguration], GpuConfig]] = {
    "nothing said": ([], GpuConfig()),
    "class alone": ([of_class(mps(25))], GpuConfig(strategy=Strategy.MPS, thread_percentage=25)),
    "claim alone": ([of_claim(mps(25))], GpuConfig(strategy=Strategy.MPS, thread_percentage=25)),
    "claim tightens": (
        [of_class(mps(50)), of_claim(mps(10))],
        GpuConfig(strategy=Strategy.MPS, thread_percentage=10),
    ),
    "claim can't raise": (
        [of_class(mps(25)), of_claim(mps(90))],
        GpuConfig(strategy=Strategy.MPS, thread_percentage=25),
    ),
    "each limit by itself": (
        [of_class(mps(25, "16Mi")), of_claim(mps(50, "8Mi"))],
        GpuConfig(strategy=Strategy.MPS, thread_percentage=25, memory_limit=MIB_8),
    ),
    "claim can't drop the class's strategy": (
        [of_class(mps(25)), of_claim(gpu_config())],
        GpuConfig(strategy=Strategy.MPS, thread_percentage=25),
    ),
    "later wins within the class": (
        [of_class(mps(25)), of_class(mps(50))],
        GpuConfig(strategy=Strategy.MPS, thread_percentage=50),
    ),
    "later wins within the claim": (
        [of_claim(mps(25, "8Mi")), of_claim(mps(50))],
        GpuConfig(strategy=Strategy.MPS, thread_percentage=50),
    ),
    "order of sources does not matter": (
        [of_claim(mps(10)), of_class(mps(50))],
        GpuConfig(strategy=Strategy.MPS, thread_percentage=10),
    ),
    "other device request": ([of_claim(mps(25), "other")], GpuConfig()),
    "by base name": ([of_claim(mps(25), "gpu")], GpuConfig(strategy=Strategy.MPS, thread_percentage=25)),
    "by full name": ([of_claim(mps(25), "gpu/big")], GpuConfig(strategy=Strategy.MPS, thread_percentage=25)),
    "by another subrequest": ([of_claim(mps(25), "gpu/small")], GpuConfig()),
    "other driver": ([of_claim({"anything": 1}, driver="gpu.example.com")], GpuConfig()),
}


def gpu_config_of(document: dict[str, Any], driver: str = DRIVER) -> GpuConfig:
    return config_for(GPU, given("gpu-0"), [of_claim(document, driver=driver)], ConfigRules(driver))


@pytest.mark.parametrize(("document", "config"), READ.values(), ids=READ)
def test_reads(document: dict[str, Any], config: GpuConfig) -> None:
    assert gpu_config_of(document) == config


@pytest.mark.parametrize(("document", "sentence"), REFUSED.values(), ids=REFUSED)
def test_refuses(document: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeviceConfigError, match=re.escape(sentence)) as refused:
        gpu_config_of(document)
    assert len(str(refused.value)) < 400


def test_group_follows_the_drivers_name() -> None:
    document = {"apiVersion": "resource.gpu.deckhouse.io/v1alpha1", "kind": "GpuConfig"}
    assert gpu_config_of(document, "gpu.deckhouse.io") == GpuConfig()


@pytest.mark.parametrize(("entries", "config"), TOGETHER.values(), ids=TOGETHER)
def test_together(entries: list[DeviceAllocationConfiguration], config: GpuConfig) -> None:
    assert config_for(GPU, given("gpu-0", request="gpu/big"), entries, ConfigRules(DRIVER)) == config


def test_class_and_claim_with_different_strategies() -> None:
    with pytest.raises(DeviceConfigError, match="the DeviceClass sets MPS and the ResourceClaim TimeSlicing"):
        config_for(GPU, given("gpu-0"), [of_class(mps()), of_claim(time_slicing())], ConfigRules(DRIVER))


def test_an_overridden_entry_must_be_valid_too() -> None:
    entries = [of_claim(gpu_config({"strategy": "x"})), of_claim(mps())]
    with pytest.raises(DeviceConfigError, match=r"GpuConfig of the ResourceClaim: sharing\.strategy"):
        config_for(GPU, given("gpu-0"), entries, ConfigRules(DRIVER))
