"""Settings that an administrator turns, on a real driver process: NVIDIA's spelling, and MIG mode that stays on."""

import json
from typing import Any

import pytest

from dra.objects import ResourceClaim
from tests.nodedriver.claims import DRIVER, allocated, given, of_claim
from tests.nodedriver.node import DriverNode

pytestmark = pytest.mark.programs

UID = "aaaaaaaa-0000-4000-8000-000000000000"
MIG = "gpu-0-mig-3g40gb-4"


def in_nvidias_words() -> ResourceClaim:
    limits = {"defaultActiveThreadPercentage": 30, "defaultPerDevicePinnedMemoryLimit": {"0": "8Gi"}, "multiUser": True}
    sharing = {"strategy": "MPS", "mpsConfig": limits}
    document = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "MigDeviceConfig", "sharing": sharing}
    return allocated(given(MIG, 50), config=(of_claim(document),), uid=UID)


def test_by_default_nvidias_spelling_is_refused(driver_node: DriverNode) -> None:
    asked = driver_node.allocate(in_nvidias_words())
    assert driver_node.prepare(asked)[UID].error == (
        "MigDeviceConfig of the ResourceClaim: apiVersion: 'resource.nvidia.com/v1beta1' is not allowed; use "
        "resource.gpu.portico.dev/v1alpha1"
    )
    assert driver_node.checkpoint() == {}


def test_told_so_the_driver_reads_nvidias_spelling_and_keeps_mig_mode(driver_node: DriverNode) -> None:
    driver_node.terminate("driver")
    driver_node.start("driver", "--nvidia-configs", "yes", "--mig-mode", "keep")
    asked = driver_node.allocate(in_nvidias_words())
    assert not driver_node.prepare(asked)[UID].error
    (spec,) = [json.loads(path.read_text()) for path in driver_node.cdi_dir.glob(f"{DRIVER}-claim-*.json")]
    env: list[Any] = spec["devices"][0]["containerEdits"]["env"]
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30" in env
    assert "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M" in env
    assert driver_node.unprepare(asked) == {UID: ""}
    card = driver_node.state.read().gpus[0]
    assert (card.gpu_instances, card.mig_current) == ((), True)
