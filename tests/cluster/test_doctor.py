"""The doctor on a real node: it finds containerd and kubelet as they run, and a device plugin for a name of claims."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.deviceplugin import offering
from tests.cluster.node import Node
from tests.cluster.waiting import wait_until

DRIVER = "gpu.doctor-test.dev"
RESOURCE = "doctor-test.dev/gpu"  # no vendor's: the node is shared, and goes on to say that there are none
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    return apply_roles(cluster, namespace="doctor-system", teams={}, driver_name=DRIVER, prefix="portico:")


@pytest.fixture
def device_class(cluster: Cluster) -> Iterator[None]:
    """A class that serves the same name by claims."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    made = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "doctor-test"},
        "spec": {"selectors": [selector], "extendedResourceName": RESOURCE},
    }
    cluster.apply(made)
    yield
    cluster.call("DELETE", "/apis/resource.k8s.io/v1/deviceclasses/doctor-test")


def plugins_folder(node: Node) -> Path:
    return node.folder / "var-lib-kubelet" / "device-plugins"


def consult(node: Node, accounts: ServiceAccounts) -> dict[str, dict[str, Any]]:
    """The findings about the node, as the driver's account sees them, on the machine's own /proc."""
    node.cluster.service_account_kubeconfig(accounts.namespace, accounts.driver, node.name)
    kubeconfig = node.cluster.kubeconfig(f"system:serviceaccount:{accounts.namespace}:{accounts.driver}")
    command: list[str | Path] = [
        *(sys.executable, "-m", "simulator.node", "--root", node.folder / "doctor-silicon", "doctor", "--json"),
        *("--node-name", node.name, "--driver-name", DRIVER, "--kubeconfig", kubeconfig, "--proc-root", "/proc"),
        *("--kubelet-dir", node.kubelet_root, "--cdi-dir", node.cdi, "--device-plugins-dir", plugins_folder(node)),
    ]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return {each["check"]: each for each in json.loads(done.stdout) if each["gpu"] is None}


def amount(node: Node) -> str:
    allocatable = node.cluster.call("GET", f"/api/v1/nodes/{node.name}")["status"].get("allocatable", {})
    return str(allocatable.get(RESOURCE, ""))


def test_runtime_and_kubelet_are_found_as_they_run(node: Node, accounts: ServiceAccounts) -> None:
    found = consult(node, accounts)
    assert found["RuntimeGivesDevices"]["verdict"] == "ok", found["RuntimeGivesDevices"]
    assert str(node.cdi) in found["RuntimeGivesDevices"]["what"]
    assert (found["KubeletSupported"]["verdict"], found["KubeletSupported"]["what"]) == ("ok", "kubelet v1.37.2.")


@pytest.mark.usefixtures("device_class")
def test_a_device_plugin_for_the_same_name_is_found(node: Node, accounts: ServiceAccounts) -> None:
    assert consult(node, accounts)["OfferedOnce"]["verdict"] == "ok"
    with offering(plugins_folder(node), RESOURCE, ["a", "b"]):
        wait_until(lambda: amount(node) == "2", "two devices in the node's allocatable", 90)
        found = consult(node, accounts)["OfferedOnce"]
    assert (found["verdict"], found["reason"]) == ("problem", "DevicePlugin")
    assert found["what"] == (
        f"A device plugin offers {RESOURCE}: 2 (sockets: doctor-test.dev-gpu.sock); "
        f"a DeviceClass serves {RESOURCE} too."
    )
    wait_until(lambda: amount(node) in ("", "0"), "the end of the offer", 90)
    assert consult(node, accounts)["OfferedOnce"]["verdict"] == "ok"
