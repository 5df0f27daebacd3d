"""The time of a card on a real cluster: pods that take turns by slots, and one that sets how long a turn is.

A card has ten slots (`--time-slices`), which the scheduler counts and nobody enforces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from simulator.silicon.hardware import Gpu
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.waiting import wait_until
from tests.journeys.conftest import DRIVER_NAME
from tests.journeys.footprint import footprint
from tests.journeys.overlay import Document, overlaid
from tests.journeys.test_device_health import made
from tests.journeys.workloads import Workloads

TEAM = "inference-team"
CARD = 3
DEFAULT, LONG = 0, 3  # of `nvidia-smi compute-policy --set-timeslice`
HOLD = ("cudaclient", "alloc", "30G", "--hold")


@pytest.fixture
def team(node_driver: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    """Classes of the one card: its slots, and all of it. Nothing of an earlier test is left on the node."""
    wait_until(lambda: footprint(node_driver)["checkpoint"] == [], "the end of what was prepared before", 90)
    uuid = card(node_driver).uuid
    for name, device_type in (("slots", "TimeSliced"), ("whole", "Physical")):
        attributes = f'device.attributes["{DRIVER_NAME}"]'
        expression = (
            f'device.driver == "{DRIVER_NAME}" && {attributes}.deviceType == "{device_type}" && '
            f'{attributes}.?uuid.orValue("") == "{uuid}"'
        )
        cluster.apply(made("DeviceClass", f"times-{name}", {"selectors": [{"cel": {"expression": expression}}]}))
    workloads = Workloads(cluster, TEAM)
    yield workloads
    workloads.clear()
    node_driver.await_unprepared()


def card(driver: NodeDriver) -> Gpu:
    """The default fleet's PCI order is its index order."""
    return driver.state.read().gpus[CARD]


def slots(count: int) -> Document:
    return {"deviceClassName": "times-slots", "capacity": {"requests": {"slots": str(count)}}}


def pod(name: str, exactly: Document, *config: Document) -> tuple[Document, Document]:
    """A CUDA program that keeps a context on the device, and the template of its claim."""
    devices = {"requests": [{"name": "gpu", "exactly": exactly}], "config": list(config)}
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
        "containers": [{"name": "app", "image": "any", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    metadata = {"name": name, "namespace": TEAM}
    document = overlaid({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, HOLD)
    return made("ResourceClaimTemplate", name, {"spec": {"devices": devices}}, namespace=TEAM), document


def long_slices() -> Document:
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    version = f"resource.{DRIVER_NAME}/v1alpha1"
    parameters = {"apiVersion": version, "kind": "GpuConfig", "sharing": sharing}
    return {"requests": ["gpu"], "opaque": {"driver": DRIVER_NAME, "parameters": parameters}}


def status_of(team: Workloads, name: str) -> tuple[Document, dict[str, tuple[str, str]]]:
    """What the claim says of its one device, without who was seen on it, and its conditions."""
    (status,) = wait_until(lambda: team.claim_of(name)["status"].get("devices"), f"the device status of {name}")
    data = {key: value for key, value in status["data"].items() if key != "lastProcessSeen"}
    return data, {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def answer_of(driver: NodeDriver, name: str) -> dict[str, Any]:
    """What the pod's program got from CUDA."""
    said = wait_until(lambda: driver.node.logs(name, "app", TEAM), f"the answer that {name} got")
    answer: dict[str, Any] = json.loads(said.splitlines()[0])
    return {key: answer[key] for key in ("ok", "via", "device")}


def test_pods_take_turns_on_a_card_until_its_slots_are_used_up(node_driver: NodeDriver, team: Workloads) -> None:
    untouched = footprint(node_driver)
    uuid = card(node_driver).uuid
    team.cluster.apply(*pod("six", slots(6)), *pod("four", slots(4)))
    team.await_running(2)
    for name, count in (("six", 6), ("four", 4)):
        (result,) = team.results(name)
        assert result["device"] == f"gpu-{CARD}-timesliced"
        assert result["consumedCapacity"] == {"slots": str(count), "memory": "0"}
        assert answer_of(node_driver, name) == {"ok": True, "via": "direct", "device": uuid}
        data, conditions = status_of(team, name)
        assert data == {
            "mode": "TimeSliced", "uuid": uuid, "sharing": "TimeSlicing", "slots": count, "enforcedBy": "None"
        }  # fmt: skip
        assert conditions == {"Ready": ("True", "Prepared"), "ShareEnforced": ("False", "None")}
    assert footprint(node_driver)["cards"] == untouched["cards"]
    assert node_driver.state.read().mps_daemons == ()

    team.cluster.apply(*pod("one-more", slots(1)))
    wait_until(
        lambda: any("cannot allocate all claims" in event for event in team.events("one-more")),
        "the scheduler's word that an eleventh slot does not fit",
    )
    assert [each["metadata"]["name"] for each in team.pods("Running")] == ["four", "six"]

    team.delete("pod", "four")
    team.await_running(1, selector="one-more")
    assert answer_of(node_driver, "one-more") == {"ok": True, "via": "direct", "device": uuid}
    team.clear()
    wait_until(lambda: footprint(node_driver) == untouched, "a node as it was before the pods", 60)


@pytest.mark.parametrize(
    ("exactly", "told"),
    [
        ({"deviceClassName": "times-whole"}, {"mode": "Physical"}),
        (slots(10), {"mode": "TimeSliced", "sharing": "TimeSlicing", "slots": 10}),
    ],
    ids=["exclusively", "by all its slots"],
)
def test_who_has_a_card_alone_sets_the_length_of_its_slices(
    node_driver: NodeDriver, team: Workloads, exactly: Document, told: Document
) -> None:
    untouched = footprint(node_driver)
    assert card(node_driver).timeslice == DEFAULT
    team.cluster.apply(*pod("alone", exactly, long_slices()))
    team.await_running(1)

    silicon = node_driver.state.read().gpus
    assert [gpu.timeslice for gpu in silicon] == [LONG if gpu.index == CARD else DEFAULT for gpu in silicon]
    assert answer_of(node_driver, "alone") == {"ok": True, "via": "direct", "device": silicon[CARD].uuid}
    data, conditions = status_of(team, "alone")
    assert data == {"uuid": silicon[CARD].uuid, "enforcedBy": "None", **told}
    assert conditions["Ready"] == ("True", "Prepared")

    team.delete("pod", "alone")
    wait_until(lambda: footprint(node_driver) == untouched, "a card with slices of the default length", 60)


def test_slots_beside_others_may_not_set_it(node_driver: NodeDriver, team: Workloads) -> None:
    team.cluster.apply(*pod("some", slots(4), long_slices()))
    wait_until(
        lambda: any("ask for all 10 slots" in event for event in team.events("some")), "the refusal in the events", 60
    )
    assert card(node_driver).timeslice == DEFAULT
