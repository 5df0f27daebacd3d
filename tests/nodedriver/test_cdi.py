"""CDI specs: what they say, and that a runtime takes them; device nodes as /proc tells; files that last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra.names import ClaimUID
from nodedriver.cdi import (
    CdiCommon,
    CdiDevice,
    DriverEdits,
    Mount,
    MpsEdits,
    device_name,
    file_name,
    note_of,
    qualified_name,
    spec,
)
from nodedriver.driverroot import container_files, find_nvml, find_program
from nodedriver.facts import DeviceNode, MigPlacement
from nodedriver.nvml import Nvml
from nodedriver.ports import GpuError
from nodedriver.procfs import control_nodes, driver_version, gpu_node, mig_nodes
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.tree import Tree
from tests.nodedriver.cdirules import faults

DRIVER = "gpu.portico.dev"
UID = ClaimUID("0f3c8a52-6d1c-4b0e-9a57-3d1b9f3f8a11")
CONTROL = (DeviceNode("/dev/nvidiactl", 195, 255),)
LIBRARY = Mount("/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1")


def spec_of(*devices: CdiDevice) -> dict[str, Any]:
    text = spec(
        DRIVER,
        devices,
        CdiCommon(control_nodes=CONTROL, driver=DriverEdits(mounts=(LIBRARY,)), note="n", mark="PORTICO_CLAIM_X=1"),
    )
    assert faults(text) == []
    found: dict[str, Any] = json.loads(text)
    return found


def whole(**mps: Any) -> CdiDevice:
    name = device_name(UID, "gpu-3", "gpu")
    return CdiDevice(name=name, nodes=(gpu_node(3),), mps=MpsEdits(**mps) if mps else None)


def test_names() -> None:
    assert device_name(UID, "gpu-3", "main") == f"{UID}-gpu-3-main"
    assert qualified_name(DRIVER, f"{UID}-gpu-3-main") == f"gpu.portico.dev/claim={UID}-gpu-3-main"
    assert file_name(DRIVER, UID) == f"gpu.portico.dev-claim-{UID}.json"


def test_an_exclusive_card() -> None:
    found = spec_of(whole())
    assert (found["cdiVersion"], found["kind"]) == ("0.6.0", "gpu.portico.dev/claim")
    assert found["devices"] == [
        {
            "name": f"{UID}-gpu-3-gpu",
            "containerEdits": {
                "deviceNodes": [
                    {"path": "/dev/nvidia3", "type": "c", "major": 195, "minor": 3, "permissions": "rw"}
                ]
            },
        }
    ]  # fmt: skip
    common = found["containerEdits"]
    assert common["env"] == ["NVIDIA_VISIBLE_DEVICES=void", "PORTICO_CLAIM_X=1"]
    assert [node["path"] for node in common["deviceNodes"]] == ["/dev/nvidiactl"]
    assert common["mounts"] == [
        {
            "hostPath": "/usr/lib/libcuda.so.1",
            "containerPath": "/usr/lib/libcuda.so.1",
            "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"],
        }
    ]


def test_a_share_under_mps() -> None:
    (device,) = spec_of(whole(pipe_directory="/p/mps/ab/pipe", thread_percentage=25, memory_limit=20 * 2**30))[
        "devices"
    ]
    edits = device["containerEdits"]
    assert edits["env"] == [
        "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20480M",
    ]
    assert [(m["hostPath"], m["containerPath"], m["options"][0]) for m in edits["mounts"]] == [
        ("/p/mps/ab/pipe", "/tmp/nvidia-mps", "rw")
    ]


def test_mps_without_limits_of_ours_and_with_shared_memory() -> None:
    (device,) = spec_of(whole(pipe_directory="/p/pipe", shared_memory="/p/shm"))["devices"]
    edits = device["containerEdits"]
    assert edits["env"] == ["CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"]
    assert [m["containerPath"] for m in edits["mounts"]] == ["/tmp/nvidia-mps", "/dev/shm"]


names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
nodes = st.builds(DeviceNode, st.just("/dev/nvidia0"), st.integers(1, 4095), st.integers(0, 2**20 - 1))
limits = st.one_of(st.none(), st.integers(2**20, 2**40))
edits = st.one_of(
    st.none(),
    st.builds(MpsEdits, pipe_directory=st.just("/p"), thread_percentage=limits, memory_limit=limits),
)


@given(st.uuids(), st.lists(st.tuples(names, names), min_size=1, max_size=8, unique=True), nodes, edits)
def test_every_spec_is_one_that_a_runtime_takes(uid: Any, given: Any, node: DeviceNode, mps: MpsEdits | None) -> None:
    devices = [
        CdiDevice(name=device_name(ClaimUID(str(uid)), device, request), nodes=(node,), mps=mps)
        for device, request in given
    ]
    if len({device.name for device in devices}) == len(devices):
        assert faults(spec(DRIVER, devices, CdiCommon(control_nodes=CONTROL))) == []


def test_the_checker_finds_faults() -> None:
    good = json.loads(spec(DRIVER, [whole()], CdiCommon(control_nodes=CONTROL)))
    bad: tuple[dict[str, Any], ...] = (
        {"cdiVersion": "0.3.0"},
        {"kind": "portico"},
        {"devices": []},
        {"devices": [{"name": "a", "containerEdits": {}}]},
        {"extra": 1},
        {"containerEdits": {"hooks": [{"hookName": "sometime", "path": "/h"}]}},
        {"containerEdits": {"hooks": [{"hookName": "prestart", "path": "h"}]}},
    )
    assert all(faults(json.dumps(good | fault).encode()) for fault in bad)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return initialise(tmp_path / "machine")


def test_control_nodes_take_their_numbers_from_proc(tree: Tree) -> None:
    assert control_nodes(tree.proc) == (
        DeviceNode("/dev/nvidiactl", 195, 255),
        DeviceNode("/dev/nvidia-uvm", 506, 0),
        DeviceNode("/dev/nvidia-uvm-tools", 506, 1),
    )


def test_a_mig_instance_has_two_capability_nodes(tree: Tree) -> None:
    silicon_nvml.install(tree.state)
    gpus = Nvml(library=None, sys_root=tree.sys)
    try:
        gpu = gpus.facts()[2]
        gpus.enter_mig(gpu.pci_address)
        made = gpus.create_mig(gpu.pci_address, MigPlacement(profile_id=9, start=4, size=4))
    finally:
        gpus.close()
    assert made.compute_instance_id is not None
    found = mig_nodes(tree.proc, gpu.minor, made.gpu_instance_id, made.compute_instance_id)
    table = dict(line.rsplit(" ", 1) for line in (tree.proc / "driver/nvidia-caps/mig-minors").read_text().splitlines())
    instance = f"gpu{gpu.minor}/gi{made.gpu_instance_id}"
    minors = [int(table[f"{instance}/access"]), int(table[f"{instance}/ci{made.compute_instance_id}/access"])]
    assert found == tuple(DeviceNode(f"/dev/nvidia-caps/nvidia-cap{minor}", 237, minor) for minor in minors)


def test_what_proc_lacks_is_named(tree: Tree) -> None:
    with pytest.raises(GpuError, match=r"gi5/access can't be read: No such file"):
        mig_nodes(tree.proc, 0, 5, 0)
    (tree.proc / "devices").write_text("Character devices:\n195 nvidia\n\nBlock devices:\n506 nvidia-uvm\n")
    with pytest.raises(GpuError, match=r"has no nvidia-uvm, so its kernel module is not loaded: load it with"):
        control_nodes(tree.proc)


def test_the_driver_root_is_searched(tree: Tree) -> None:
    assert find_program(tree.driver, "nvidia-cuda-mps-control") == tree.driver / "usr/bin/nvidia-cuda-mps-control"
    assert find_program(tree.driver, "nvidia-nothing") is None
    assert find_nvml(tree.driver) == tree.driver / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    files = {path.relative_to(tree.driver).as_posix() for path in container_files(tree.driver)}
    assert {
        "usr/lib/x86_64-linux-gnu/libcuda.so",
        "usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "usr/bin/nvidia-smi",
    } < files
    assert not any("mps-control" in name for name in files)


def test_a_file_carries_a_note_for_its_writer() -> None:
    text = spec(DRIVER, [whole()], CdiCommon(control_nodes=CONTROL, note='{"uid": "a"}'))
    assert note_of(DRIVER, text) == '{"uid": "a"}'
    assert note_of("gpu.example.com", text) is None
    assert [note_of(DRIVER, content) for content in (b"", text[:40], b"[]", b'{"kind": 3}', b"\xff")] == [None] * 5


def test_the_version_of_the_kernel_modules(tree: Tree) -> None:
    assert driver_version(tree.proc) == "580.126.20"
    file = tree.proc / "driver/nvidia/version"
    file.write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:\n"
    )
    assert driver_version(tree.proc) == "535.183.01"
    file.unlink()
    assert driver_version(tree.proc) is None
