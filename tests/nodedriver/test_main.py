"""The driver as a process: what it publishes, how it answers, what it writes into claims, how it starts and ends."""

import json
import os
import subprocess
import sys
from typing import Any

import grpc
import pytest

from dra.objects import ResourceClaim
from nodedriver.pb.pluginregistration.v1 import api_pb2, api_pb2_grpc
from tests.nodedriver.claims import DRIVER, NODE, allocated, given, gpu_config, of_claim
from tests.nodedriver.machine import CHECKOUT, CLAIMS, short_folder, wait_until
from tests.nodedriver.node import SLICES, DriverNode

pytestmark = pytest.mark.programs

A, B, C = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
MIG = "gpu-0-mig-3g40gb-4"


def logged(node: DriverNode, program: str = "driver") -> list[dict[str, Any]]:
    return [json.loads(line) for line in node.log(program).splitlines()]


def status_data(node: DriverNode, name: str) -> dict[str, Any]:
    devices = node.store.objects[f"{CLAIMS}/{name}"].get("status", {}).get("devices", [])
    data: dict[str, Any] = devices[0]["data"] if devices else {}
    return data


def test_slices_are_there_before_the_kubelet_is_told(driver_node: DriverNode) -> None:
    slices = driver_node.store.under(SLICES)
    assert len(slices) == 9
    assert sum(len(each["spec"].get("devices", [])) for each in slices) == 216
    assert {each["spec"]["driver"] for each in slices} == {DRIVER}
    assert slices[0]["metadata"]["ownerReferences"][0]["uid"] == "node-uid"


def test_one_bad_claim_does_not_fail_its_neighbours(driver_node: DriverNode) -> None:
    node = driver_node
    bad = allocated(given("gpu-1", 100), config=(of_claim(gpu_config({"strategy": "Turbo"})),), name="bad", uid=A)
    answers = node.prepare(
        node.allocate(allocated(given(MIG, 100), name="good", uid=B)),
        node.allocate(bad),
        node.allocate(allocated(given("gpu-2", 100), name="other", uid=C)),
    )
    assert answers[A].error == (
        "GpuConfig of the ResourceClaim: sharing.strategy: 'Turbo' is not allowed; use TimeSlicing or MPS"
    )
    assert [d.device_name for uid in (B, C) for d in answers[uid].devices] == [MIG, "gpu-2"]
    assert set(node.checkpoint()) == {B, C}
    failed = next(line for line in logged(node) if line["event"] == "resource claim call failed")
    assert (failed["uid"], failed["call"], failed["level"]) == (A, "NodePrepareResources", "warning")
    assert len({line["op_id"] for line in logged(node) if "op_id" in line}) == 1


def test_status_tells_who_enforces_and_changes_with_the_neighbours(driver_node: DriverNode) -> None:
    node = driver_node
    quarter = node.allocate(allocated(given("gpu-0", 25), name="quarter", uid=A))
    half = node.allocate(allocated(given("gpu-0", 50), name="half", uid=B))
    node.prepare(quarter)
    wait_until(lambda: status_data(node, "quarter").get("enforcedBy") == "Server", "the first status")
    node.prepare(half)
    wait_until(lambda: status_data(node, "quarter")["enforcedBy"] == "ClientEnvironment", "the neighbour's status")
    wait_until(lambda: status_data(node, "half"), "the second status")
    assert status_data(node, "half") == {
        "mode": "Physical",
        "sharing": "MPS",
        "lastProcessSeen": "",
        "enforcedBy": "Server",
        "sharePercent": 50,
        "activeThreadPercentage": 50,
        "pinnedDeviceMemoryLimit": "40523Mi",
        "uuid": node.state.read().gpus[0].uuid,
    }
    node.unprepare(half)
    wait_until(lambda: status_data(node, "quarter")["enforcedBy"] == "Server", "the status after the neighbour left")
    (device,) = node.store.objects[f"{CLAIMS}/quarter"]["status"]["devices"]
    assert (device["driver"], device["pool"], device["device"]) == (DRIVER, NODE, "gpu-0")
    assert device["shareID"] == "00000000-0000-4000-8000-000000000025"
    assert [(c["type"], c["status"], c["reason"]) for c in device["conditions"]] == [
        *(("Ready", "True", "Prepared"), ("MpsReady", "True", "DaemonReady"), ("ShareEnforced", "True", "Server"))
    ]


def test_a_status_that_can_not_be_written_fails_no_claim_and_is_written_later(driver_node: DriverNode) -> None:
    node = driver_node
    node.store.refuse.add("/claim")
    assert not node.prepare(node.allocate(allocated(given("gpu-0", 100), uid=A)))[A].error
    wait_until(lambda: "claim status not written" in node.log("driver"), "the warning")
    node.store.refuse.clear()
    wait_until(lambda: status_data(node, "claim").get("enforcedBy") == "None", "the status")


def test_eight_cards_are_prepared_side_by_side(driver_node: DriverNode) -> None:
    node = driver_node
    uids = [f"{card:08d}-0000-4000-8000-000000000000" for card in range(8)]
    asked = [
        node.allocate(allocated(given(f"gpu-{card}-mig-3g40gb-4", 100), name=f"claim-{card}", uid=uid))
        for card, uid in enumerate(uids)
    ]
    answers = node.prepare(*asked)
    assert {uid: answer.error for uid, answer in answers.items()} == dict.fromkeys(uids, "")
    assert [len(gpu.gpu_instances) for gpu in node.state.read().gpus] == [1] * 8
    assert node.unprepare(*asked) == dict.fromkeys(uids, "")
    assert [len(gpu.gpu_instances) for gpu in node.state.read().gpus] == [0] * 8


def test_a_restart_keeps_claims_daemons_and_slices(driver_node: DriverNode) -> None:
    node = driver_node
    asked = node.allocate(allocated(given("gpu-0", 25), uid=A))
    answer = node.prepare(asked)
    before, pid = node.everything(), node.state.read().mps_daemons[0].pid
    versions = [each["metadata"]["resourceVersion"] for each in node.store.under(SLICES)]
    assert node.terminate("driver") == 0
    assert not node.registration_socket.exists()
    node.start("driver")
    assert node.everything() == before
    assert node.state.read().mps_daemons[0].pid == pid
    assert [each["metadata"]["resourceVersion"] for each in node.store.under(SLICES)] == versions
    assert node.prepare(asked) == answer


def test_a_claim_is_taken_over_from_its_cdi_file(driver_node: DriverNode) -> None:
    node = driver_node
    asked = node.allocate(allocated(given(MIG, 100), uid=A))
    answer = node.prepare(asked)
    before = node.everything()
    node.terminate("driver")
    (node.plugin_dir / "checkpoint.json").unlink()
    node.start("driver")
    report = next(line for line in logged(node) if line["event"] == "resource claim taken over from its CDI file")
    assert (report["level"], report["uid"]) == ("warning", A)
    assert node.prepare(asked) == answer
    after = node.everything()
    assert {**after, "checkpoint": None} == {**before, "checkpoint": None}
    assert node.unprepare(asked) == {A: ""}


def test_unreadable_checkpoint_is_reported_and_taints_its_cards(driver_node: DriverNode) -> None:
    node = driver_node
    claim: ResourceClaim = allocated(given(MIG, 100), uid=A)
    node.prepare(node.allocate(claim))
    node.terminate("driver")
    (node.plugin_dir / "checkpoint.json").write_bytes(b"{broken")
    for file in node.cdi_dir.glob("*.json"):
        file.unlink()
    node.start("driver")
    (aside,) = node.plugin_dir.glob("checkpoint.json.unreadable-*")
    assert aside.read_bytes() == b"{broken"
    report = next(line for line in logged(node) if line["event"] == "unreadable checkpoint set aside")
    assert (report["level"], report["kept_as"]) == ("error", str(aside))
    tainted = {
        device["name"].split("-mig")[0].removesuffix("-timesliced")
        for each in node.store.under(SLICES)
        for device in each["spec"].get("devices", [])
        if device.get("taints")
    }
    assert tainted == {"gpu-0"}


def test_a_refused_registration_ends_the_process(driver_node: DriverNode) -> None:
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix://{driver_node.registration_socket}", options=options) as channel:
        status = api_pb2.RegistrationStatus(plugin_registered=False, error="another endpoint is registered")
        api_pb2_grpc.RegistrationStub(channel).NotifyRegistrationStatus(status, timeout=10)
    assert driver_node.await_end("driver") == 1
    assert logged(driver_node)[-1]["reason"] == "another endpoint is registered"


PROGRAMS = {"driver": ("nodedriver.main", "driver"), "mpsd": ("nodedriver.mpsd",)}


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if key != "NODE_NAME"}
    env = {**inherited, "PYTHONPATH": str(CHECKOUT), **environment}
    command = [sys.executable, "-m", *PROGRAMS[program], *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_setting_is_one_sentence(program: str) -> None:
    done = run(program, PORTICO_CDI_DIR="cdi", NODE_NAME="node-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"python -m {' '.join(PROGRAMS[program])}: --cdi-dir (PORTICO_CDI_DIR): 'cdi' is not an absolute path\n"
    )


SENTENCES = {"driver": "no usable configuration for a cluster", "mpsd": "is not below the driver root"}


@pytest.mark.parametrize("program", SENTENCES)
def test_a_start_that_fails_says_why_in_the_log(program: str) -> None:
    with short_folder() as folder:
        card = folder / "bus/pci/devices/0000:17:00.0"
        card.mkdir(parents=True)
        (card / "vendor").write_text("0x10de\n")
        (card / "class").write_text("0x030200\n")
        flags = ["--node-name", "node-1", "--kubeconfig", f"{folder}/none", "--driver-root", f"{folder}/none"]
        done = run(program, *flags, "--kubelet-dir", str(folder), "--sys-root", str(folder))
    assert done.returncode == 1, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["event"], last["level"], last["component"]) == ("program could not go on", "error", program)
    assert SENTENCES[program] in last["reason"]
