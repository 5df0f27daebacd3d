"""Proof of the node driver: the three published manifests on a real scheduler and kubelet, word for word.

The card of an H100 has 81,559 MiB; the driver keeps 512 MiB for contexts; 25 % of the rest is 20,261 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from simulator.silicon.hardware import Gpu
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.processes import ProgramError
from tests.cluster.waiting import wait_until
from tests.journeys.overlay import Document, manifests, overlaid
from tests.journeys.workloads import Workloads

QUARTER_MEMORY_MIB = 20261
RERANKER = "03-small-mps-share.yaml"
INFERENCE = "02-inference-mig.yaml"
TRAINING = "01-training-physical.yaml"


@pytest.fixture(scope="module")
def classes(cluster: Cluster) -> None:
    """The DeviceClasses of the three files."""
    for name in (TRAINING, INFERENCE, RERANKER):
        cluster.apply(*(document for document in manifests(name) if document["kind"] == "DeviceClass"))


@pytest.fixture(scope="class")
def inference_team(node_driver: NodeDriver, classes: None) -> Iterator[Workloads]:
    yield from _namespace(node_driver, "inference-team")


@pytest.fixture(scope="class")
def ml_team(node_driver: NodeDriver, classes: None) -> Iterator[Workloads]:
    yield from _namespace(node_driver, "ml-team")


def _namespace(driver: NodeDriver, name: str) -> Iterator[Workloads]:
    workloads = Workloads(driver.node.cluster, name)
    yield workloads
    workloads.clear()


def rest_of(name: str) -> list[Document]:
    """What a file holds beside its class, fit to run here."""
    return [overlaid(document) for document in manifests(name) if document["kind"] != "DeviceClass"]


def container_env(driver: NodeDriver, pod: str, namespace: str) -> dict[str, str]:
    entries = driver.node.container_spec(pod, "app", namespace)["process"]["env"]
    return dict(entry.split("=", 1) for entry in entries)


def gpu_of(driver: NodeDriver, device: str) -> Gpu:
    """The silicon behind `gpu-<i>`: the default fleet's PCI order is its index order."""
    return driver.state.read().gpus[int(device.split("-")[1])]


def devices(workloads: Workloads, pods: list[dict[str, Any]]) -> list[str]:
    return sorted(result["device"] for pod in pods for result in workloads.results(pod["metadata"]["name"]))


def claim_template(name: str, share: int) -> Document:
    (template,) = (d for d in manifests(RERANKER) if d["kind"] == "ResourceClaimTemplate")
    template["metadata"]["name"] = name
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["capacity"]["requests"]["sharePercent"] = str(share)
    return template


def pod_with(name: str, template: str) -> Document:
    (deployment,) = (d for d in rest_of(RERANKER) if d["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    spec["resourceClaims"][0]["resourceClaimTemplateName"] = template
    metadata = {"name": name, "namespace": "inference-team"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="class")
def rerankers(inference_team: Workloads) -> list[dict[str, Any]]:
    """The four pods of the published Deployment, running."""
    inference_team.cluster.apply(*rest_of(RERANKER))
    return inference_team.await_running(4)


class TestFourQuarters:
    """Layer 3: small services share a card by percent, under MPS. The four pods of the file, looked at."""

    def test_they_share_one_card(self, inference_team: Workloads, rerankers: list[dict[str, Any]]) -> None:
        assert len(set(devices(inference_team, rerankers))) == 1
        for pod in rerankers:
            (result,) = inference_team.results(pod["metadata"]["name"])
            assert result["consumedCapacity"] == {"sharePercent": "25", "memory": "0"}

    def test_limits_are_in_each_containers_environment(
        self, node_driver: NodeDriver, inference_team: Workloads, rerankers: list[dict[str, Any]]
    ) -> None:
        for pod in rerankers:
            environment = container_env(node_driver, pod["metadata"]["name"], "inference-team")
            assert environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
            assert environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"0={QUARTER_MEMORY_MIB}M"
            assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"

    def test_limits_are_read_back_from_the_daemon_itself(
        self, node_driver: NodeDriver, inference_team: Workloads, rerankers: list[dict[str, Any]]
    ) -> None:
        gpu = gpu_of(node_driver, devices(inference_team, rerankers)[0])
        (daemon,) = node_driver.state.read().mps_daemons

        assert daemon.devices == (gpu.uuid,)
        assert daemon.multi_user
        assert node_driver.mps_control(daemon.pipe_directory, "get_default_active_thread_percentage") == "25.0"
        answer = node_driver.mps_control(daemon.pipe_directory, f"get_default_device_pinned_mem_limit {gpu.uuid}")
        assert answer == f"{QUARTER_MEMORY_MIB}M"

    def test_the_claims_say_who_enforces_their_limits(
        self, inference_team: Workloads, rerankers: list[dict[str, Any]]
    ) -> None:
        def statuses() -> list[dict[str, Any]] | None:
            claims = [inference_team.claim_of(pod["metadata"]["name"]) for pod in rerankers]
            found = [status for claim in claims for status in claim["status"].get("devices", [])]
            return found if len(found) == len(rerankers) else None

        for status in wait_until(statuses, "the device status of four claims"):
            assert status["data"]["enforcedBy"] == "Server"
            assert {c["type"]: c["status"] for c in status["conditions"]} == {
                "Ready": "True", "MpsReady": "True", "ShareEnforced": "True"
            }  # fmt: skip

    def test_device_nodes_are_in_the_container(
        self, node_driver: NodeDriver, inference_team: Workloads, rerankers: list[dict[str, Any]]
    ) -> None:
        minor = gpu_of(node_driver, devices(inference_team, rerankers)[0]).minor
        pod = rerankers[0]["metadata"]["name"]

        for node, numbers in ((f"/dev/nvidia{minor}", f"{195:x}:{minor:x}"), ("/dev/nvidiactl", "c3:ff")):
            stat = node_driver.node.exec(pod, "app", ["stat", "-c", "%F %t:%T", node], "inference-team")
            assert stat.strip() == f"character special file {numbers}"

    @pytest.mark.parametrize(
        ("changed", "refusal"),
        [
            (("-i", "PATH=/bin"), "CUDA_ERROR_OUT_OF_MEMORY"),
            (("CUDA_MPS_PIPE_DIRECTORY=/nowhere",), "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        ],
        ids=["without any environment the server holds the limit", "the card is closed to who avoids the server"],
    )
    def test_a_client_that_changes_its_environment_is_refused(
        self, node_driver: NodeDriver, rerankers: list[dict[str, Any]], changed: tuple[str, ...], refusal: str
    ) -> None:
        pod = rerankers[0]["metadata"]["name"]
        greedy = ["env", *changed, "cudaclient", "alloc", f"{QUARTER_MEMORY_MIB + 1}M"]

        with pytest.raises(ProgramError, match=refusal):
            node_driver.node.exec(pod, "app", greedy, "inference-team")

    def test_a_client_gets_its_share_and_no_more(
        self, node_driver: NodeDriver, rerankers: list[dict[str, Any]]
    ) -> None:
        pod = rerankers[0]["metadata"]["name"]

        within = node_driver.node.exec(pod, "app", ["cudaclient", "alloc", f"{QUARTER_MEMORY_MIB}M"], "inference-team")
        assert '"ok":true' in within.replace(" ", "")
        with pytest.raises(ProgramError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            node_driver.node.exec(pod, "app", ["cudaclient", "alloc", f"{QUARTER_MEMORY_MIB + 1}M"], "inference-team")

    def test_a_fifth_goes_to_the_next_card(self, inference_team: Workloads, rerankers: list[dict[str, Any]]) -> None:
        inference_team.patch("deployment", "reranker-mps", {"spec": {"replicas": 5}})
        five = devices(inference_team, inference_team.await_running(5))

        assert sorted(map(five.count, set(five))) == [1, 4]

    def test_the_last_share_takes_the_daemon_with_it(
        self, node_driver: NodeDriver, inference_team: Workloads, rerankers: list[dict[str, Any]]
    ) -> None:
        gpu = gpu_of(node_driver, devices(inference_team, rerankers)[0])
        assert gpu.compute_mode.name == "EXCLUSIVE_PROCESS"

        inference_team.clear()

        wait_until(lambda: not node_driver.state.read().mps_daemons, "the end of the daemons")
        wait_until(
            lambda: gpu_of(node_driver, f"gpu-{gpu.index}").compute_mode.name == "DEFAULT", "the card's own mode"
        )
        node_driver.await_unprepared()


class TestSharesOfOneCard:
    """Shares of different sizes."""

    def test_25_and_25_and_50_fill_a_card(self, node_driver: NodeDriver, inference_team: Workloads) -> None:
        shares = {"a": 25, "b": 25, "c": 50, "d": 25}
        for name, share in shares.items():
            inference_team.cluster.apply(
                claim_template(f"share-{name}", share), pod_with(f"pod-{name}", f"share-{name}")
            )
            inference_team.await_running(1, selector=f"pod-{name}")

        placed = {name: inference_team.results(f"pod-{name}")[0]["device"] for name in shares}

        assert placed["a"] == placed["b"] == placed["c"] != placed["d"]


class TestMig:
    """Layer 2: a MIG profile by name, made for the pod that asks."""

    def test_the_instance_exists_while_the_pod_runs_and_is_gone_after(
        self, node_driver: NodeDriver, inference_team: Workloads
    ) -> None:
        inference_team.cluster.apply(*rest_of(RERANKER), *rest_of(INFERENCE))
        inference_team.await_running(5)
        shared = devices(inference_team, [p for p in inference_team.pods() if p["metadata"]["name"] != "inference"])
        (result,) = inference_team.results("inference")
        gpu = gpu_of(node_driver, result["device"])
        (instance,) = gpu.gpu_instances

        assert result["device"] == f"gpu-{gpu.index}-mig-3g40gb-4"
        assert f"gpu-{gpu.index}" not in shared
        assert (instance.profile_id, instance.start, instance.size) == (9, 4, 4)
        assert len(instance.compute_instances) == 1
        assert node_driver.node.exec("inference", "app", ["ls", "/dev/nvidia-caps"], "inference-team").split()

        inference_team.delete("pod", "inference")

        wait_until(lambda: not gpu_of(node_driver, f"gpu-{gpu.index}").gpu_instances, "the end of the instance")
        wait_until(lambda: not gpu_of(node_driver, f"gpu-{gpu.index}").mig_current, "the end of MIG mode")


class TestUpdate:
    """The driver is replaced while pods come and go."""

    def test_no_pod_start_fails_while_drivers_overlap(self, node_driver: NodeDriver, inference_team: Workloads) -> None:
        inference_team.cluster.apply(claim_template("share-u", 25), *(pod_with(f"u-{n}", "share-u") for n in range(2)))
        node_driver.roll_over()
        inference_team.cluster.apply(*(pod_with(f"u-{n}", "share-u") for n in range(2, 4)))
        inference_team.await_running(4, selector="u-")
        node_driver.roll_over()
        inference_team.delete("pod", "u-0")
        inference_team.cluster.apply(pod_with("u-4", "share-u"))
        inference_team.await_running(4, selector="u-")
        events = [event for n in range(5) for event in inference_team.events(f"u-{n}")]
        assert [event for event in events if "FailedPrepareDynamicResources" in event] == []
        assert node_driver.slices() != []


class TestTraining:
    """Layer 1: eight whole cards by the extended resource of an old pod."""

    def test_eight_cards_wait_for_the_others_and_then_run(
        self, node_driver: NodeDriver, inference_team: Workloads, ml_team: Workloads
    ) -> None:
        inference_team.cluster.apply(*rest_of(RERANKER))
        inference_team.await_running(4)
        inference_team.cluster.apply(*rest_of(TRAINING))
        pod = wait_until(ml_team.pods, "the pod of the job")[0]["metadata"]["name"]

        def refusal() -> str | None:
            return next((event for event in ml_team.events(pod) if "cannot allocate all claims" in event), None)

        wait_until(refusal, "the scheduler's word that the job must wait")
        assert ml_team.pods("Running") == []

        inference_team.clear()
        ml_team.await_running(1, seconds=180)

        assert sorted(result["device"] for result in ml_team.results(pod)) == [f"gpu-{i}" for i in range(8)]
        assert node_driver.state.read().mps_daemons == ()
