"""The real node: it runs pods, and a test can look into their containers."""

import os
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.node import NeedsRootError, Node
from tests.cluster.pods import await_pod, busybox_pod, create_pod, delete_pod
from tests.cluster.processes import ProgramError

GREET = ("sh", "-c", "echo to stdout; echo to stderr >&2; exec sleep 2147483647")


def test_runs_a_pod_and_lets_a_test_look_into_it(cluster: Cluster, node: Node) -> None:
    create_pod(cluster, busybox_pod("looked-into", GREET))
    pod = await_pod(cluster, "looked-into")

    assert pod["spec"]["nodeName"] == "node-1"
    assert node.exec("looked-into", "main", ["cat", "/proc/1/cmdline"]) == "sleep\x002147483647\x00"
    assert node.container_spec("looked-into", "main")["process"]["args"] == list(GREET)
    assert sorted(node.logs("looked-into", "main").splitlines()) == ["to stderr", "to stdout"]
    with pytest.raises(ProgramError, match=r"ended with 3.*said so"):
        node.exec("looked-into", "main", ["sh", "-c", "echo said so; exit 3"])
    delete_pod(cluster, "looked-into")


def test_an_image_takes_further_files(cluster: Cluster, node: Node, tmp_path: Path) -> None:
    script = tmp_path / "greet"
    script.write_text("#!/bin/sh\necho from inside\n")
    node.load_image("localhost/greeter:1", {"/bin/greet": script})
    pod = busybox_pod("greeter", ["greet"])
    pod["spec"]["containers"][0]["image"] = "localhost/greeter:1"
    create_pod(cluster, pod)

    await_pod(cluster, "greeter", "Succeeded")
    assert node.logs("greeter", "main") == "from inside\n"
    delete_pod(cluster, "greeter")


def test_a_kubelet_that_starts_again_keeps_its_pods(cluster: Cluster, node: Node) -> None:
    create_pod(cluster, busybox_pod("outlives"))
    await_pod(cluster, "outlives")
    before = node.container_id("outlives", "main")
    node.stop_kubelet()
    assert node.exec("outlives", "main", ["echo", "still here"]) == "still here\n"
    node.start_kubelet()
    await_pod(cluster, "outlives")
    assert node.container_id("outlives", "main") == before
    delete_pod(cluster, "outlives")


def test_the_machine_keeps_its_own_settings_and_folders(cluster: Cluster, node: Node) -> None:
    """What a kubelet writes outside its folders stays inside the node's mount namespace."""
    create_pod(cluster, busybox_pod("shielded"))
    await_pod(cluster, "shielded")
    for path in ("/var/lib/kubelet/device-plugins/kubelet.sock", "/run/containerd/s"):
        assert not Path(path).exists(), path
    assert not list(Path("/var/log/containers").glob("shielded_*"))
    assert list((node.folder / "var-log-containers").glob("shielded_*"))
    assert str(cluster.folder) not in Path("/proc/self/mountinfo").read_text()
    delete_pod(cluster, "shielded")


def test_without_root_one_sentence_says_what_to_do(cluster: Cluster) -> None:
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)  # nobody
    try:
        with pytest.raises(NeedsRootError) as caught:
            Node(cluster, "node-of-nobody")
    finally:
        if root:
            os.seteuid(0)
    assert str(caught.value) == (
        "the node-level tests need root: a kubelet mounts, and runc makes containers; "
        "run them as root, or ask for `make test NODE=0` to leave them out"
    )
