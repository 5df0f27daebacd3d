"""The doctor as a program over made roots: text, JSON, exit status, and what it asks the API server for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodedriver.checkpoint import write_checkpoint
from nodedriver.facts import PciAddress
from nodedriver.holding import Checkpoint
from nodedriver.nvml import Nvml
from simulator.silicon import nvml, pci
from simulator.silicon.fleet import initialise
from tests.nodedriver import apiserver
from tests.nodedriver.apiserver import Store
from tests.nodedriver.claims import NODE
from tests.nodedriver.machine import CHECKOUT, CLAIMS, short_folder
from tests.nodedriver.madenode import MadeNode
from tests.nodedriver.test_cardstatus import claim

pytestmark = pytest.mark.programs

POD, STRANGER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
PODS = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{}.slice/cri-containerd-1.scope"
FIRST, SECOND = PciAddress("0000:1b:00.0"), PciAddress("0000:43:00.0")


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as made:
        yield made


@pytest.fixture
def made(folder: Path) -> MadeNode:
    node = MadeNode(initialise(folder / "machine"), folder)
    pci.load_vfio(node.tree.sys)
    return node


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    """The API server, with a healthy node."""
    with apiserver.serve(folder / "kubeconfig") as served:
        put_node(served)
        yield served


def put_node(store: Store, allocatable: dict[str, str] | None = None) -> None:
    info = {"kubeletVersion": "v1.37.2", "containerRuntimeVersion": "containerd://2.1.4"}
    status = {"nodeInfo": info, "allocatable": {"cpu": "8"} | (allocatable or {})}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "uid": "node-uid"}, "status": status}
    store.put(f"/api/v1/nodes/{NODE}", node, "ADDED")


def consult(made: MadeNode, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "simulator.node", "--root", str(made.tree.root), "doctor", "--node-name", NODE]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(
        [*command, *made.flags, *flags], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def findings(made: MadeNode, folder: Path) -> dict[tuple[str, str | None], Any]:
    done = consult(made, "--json", "--kubeconfig", str(folder / "kubeconfig"))
    found = json.loads(done.stdout)
    assert done.returncode == int(any(each["verdict"] == "problem" for each in found)), done.stderr
    return {(each["check"], each["gpu"]): each for each in found}


def reasons(found: dict[tuple[str, str | None], Any]) -> dict[str, str]:
    """What is not in order."""
    return {check: each["reason"] for (check, _), each in found.items() if each["verdict"] != "ok"}


def test_a_healthy_node_is_told_so(made: MadeNode, folder: Path, store: Store) -> None:
    found = findings(made, folder)
    assert reasons(found) == {}
    assert {check for check, gpu in found if gpu is None} == {
        "KernelSupported", "CgroupsSupported", "RuntimeGivesDevices", "DriverReady", "KubeletSupported",
        "VfioPossible", "OfferedOnce",
    }  # fmt: skip
    assert len([gpu for check, gpu in found if check == "FreeOfAgents"]) == 8
    assert found["RuntimeGivesDevices", None]["what"] == ("containerd 2.1.4 reads CDI files in /etc/cdi, /var/run/cdi.")


def test_without_an_api_server_the_rest_is_told(made: MadeNode) -> None:
    done = consult(made)
    assert done.returncode == 0, done.stderr
    assert "[not known] KubeletSupported: The kubelet's version is not known." in done.stdout
    assert "[ok] DriverReady: NVIDIA's driver 580.126.20, 8 NVIDIA cards on the PCI bus." in done.stdout
    assert "the doctor goes without this" in done.stderr


def test_a_sick_node_is_told_by_what_has_to_be_done(made: MadeNode, folder: Path, store: Store) -> None:
    put_node(store, {"nvidia.com/gpu": "8"})
    made.write(made.tree.proc / "sys/kernel/osrelease", "4.18.0-553.el8.x86_64\n")
    (made.tree.sys / "fs/cgroup/cgroup.controllers").unlink()
    made.write(
        made.host / "etc/containerd/conf.d/nvidia.toml",
        '[plugins."io.containerd.cri.v1.runtime"]\ncdi_spec_dirs = ["/etc/cdi"]\n',
    )
    made.write(
        made.tree.proc / "driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  575.57.08  Thu\n"
    )
    made.write(made.host / "var/lib/kubelet/config.yaml", "featureGates:\n  DynamicResourceAllocation: false\n")
    made.device_plugin("nvidia.com/gpu", ["GPU-1"], "nvidia-gpu.sock")
    found = findings(made, folder)
    assert reasons(found) == {
        "KernelSupported": "TooOld",
        "CgroupsSupported": "CgroupV1",
        "RuntimeGivesDevices": "OtherFolder",
        "DriverReady": "VersionsDiffer",
        "KubeletSupported": "GateOff",
        "OfferedOnce": "DevicePlugin",
    }
    assert "nvidia.com/gpu: 8 (sockets: nvidia-gpu.sock)" in found["OfferedOnce", None]["what"]
    assert "/etc/containerd/config.toml" in found["RuntimeGivesDevices", None]["nextStep"]


def test_processes_of_claims_are_no_agents_and_all_others_are(made: MadeNode, folder: Path, store: Store) -> None:
    card = ["/dev/nvidia0", "/dev/nvidiactl", "/dev/null"]
    made.process(200, "python3", cgroup=PODS.format(POD.replace("-", "_")), files=card)
    made.process(201, "dcgm-exporter", cgroup=PODS.format(STRANGER.replace("-", "_")), files=card)
    made.process(205, "bash", files=card)
    made.write(made.tree.proc / "205/environ", "PATH=/bin\0PORTICO_CLAIM_uid_training=1\0")
    made.process(202, "nvtop", files=["/dev/nvidia1", "/dev/nvidia-uvm"])
    made.process(203, "nvidia-persistenced", files=["/dev/nvidia2"])
    made.process(206, "nv-fabricmanager", files=["/dev/nvidia2"])
    made.process(204, "python3", "python", "-m", "nodedriver.main", "driver", files=["/dev/nvidia3"])
    held = claim("training", "gpu-0", FIRST)
    checkpoint = Checkpoint(boot_id=boot_id(made), claims={held.uid: held})
    plugin_dir = made.kubelet_dir / "plugins/gpu.portico.dev"
    plugin_dir.mkdir(parents=True)
    write_checkpoint(plugin_dir / "checkpoint.json", checkpoint)
    store.put(f"{CLAIMS}/training", reserved_for(POD), "ADDED")
    found = findings(made, folder)
    assert {gpu for (check, gpu), each in found.items() if each["verdict"] == "problem"} == {FIRST, SECOND}
    assert found["FreeOfAgents", FIRST]["what"] == (
        f"GPU {FIRST} is held by what is no claim's: dcgm-exporter (process 201, pod {STRANGER})."
    )
    assert "nvtop (process 202)" in found["FreeOfAgents", SECOND]["what"]


def test_instances_that_others_made_are_found(made: MadeNode, folder: Path, store: Store) -> None:
    nvml.install(made.tree.state)
    gpus = Nvml(library=None, sys_root=made.tree.sys)
    gpu = gpus.facts()[0]
    gpus.enter_mig(gpu.pci_address)
    gpus.create_mig(gpu.pci_address, next(p for p in gpu.profiles if p.name == "3g.40gb").placements[0])
    gpus.close()
    assert reasons(findings(made, folder)) == {"InstancesKnown": "MadeByOthers"}


def test_modules_that_pass_cards_through_are_missed(made: MadeNode, folder: Path, store: Store) -> None:
    (made.tree.sys / "bus/pci/drivers/vfio-pci").rename(folder / "unloaded")
    found = findings(made, folder)
    assert reasons(found) == {"VfioPossible": "ModulesNotLoaded"}
    assert found["VfioPossible", None]["verdict"] == "note"
    assert found["VfioPossible", None]["what"] == "The kernel has not loaded vfio_pci."
    assert "modprobe -a vfio_pci, and name it in /etc/modules-load.d" in found["VfioPossible", None]["nextStep"]


def boot_id(made: MadeNode) -> str:
    return (made.tree.proc / "sys/kernel/random/boot_id").read_text().strip()


def reserved_for(pod: str) -> dict[str, Any]:
    consumer = {"resource": "pods", "name": "trainer", "uid": pod}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "training", "namespace": "ml-team"},
        "spec": {},
        "status": {"reservedFor": [consumer]},
    }
