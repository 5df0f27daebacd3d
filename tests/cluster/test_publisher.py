"""The publisher against a real API server, under the driver's own account: what lands there, and that it heals.

Facts are those of eight H100; no kubelet is needed for slices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra.kube.client import KubeClient
from dra.objects import DeviceTaint
from nodedriver.facts import GpuFacts, MigPlacement, PciAddress
from nodedriver.inventory import Inventory, InventoryRules, ServerFeatures, taint_of_unclean, take_inventory
from nodedriver.lastpublished import LastPublished
from nodedriver.publisher import Publisher
from nodedriver.serverfeatures import detect_features
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from tests.nodedriver.gpus import card

DRIVER = "gpu.publisher-test.dev"
NODE = "publisher-node"
NODES = "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
WHY = "checkpoint-unreadable"
CARDS = tuple(card(bus=0x10 + i) for i in range(8))

type Slice = dict[str, Any]


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    return apply_roles(cluster, namespace="publisher-system", teams={}, driver_name=DRIVER, prefix="portico:")


@pytest.fixture
def own_node(cluster: Cluster) -> Iterator[str]:
    """A Node object that takes no pods; its uid. What was published for it is gone afterwards."""
    made = make_node(cluster)
    yield made
    cluster.call("DELETE", f"{NODES}/{NODE}")
    cluster.call("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3D{NODE}")


def make_node(cluster: Cluster) -> str:
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {"unschedulable": True}}
    return str(cluster.call("POST", NODES, document)["metadata"]["uid"])


def driver_client(cluster: Cluster, accounts: ServiceAccounts) -> KubeClient:
    """As the driver's pod on NODE: its ServiceAccount, by a token that is bound to the node."""
    return KubeClient.from_environment(
        str(cluster.service_account_kubeconfig(accounts.namespace, accounts.driver, node=NODE))
    )


@pytest.fixture
def last(tmp_path: Path) -> LastPublished:
    """What the drivers of one node remember."""
    return LastPublished(tmp_path / "published.json")


@pytest.fixture
def publisher(cluster: Cluster, accounts: ServiceAccounts, own_node: str, last: LastPublished) -> Iterator[Publisher]:
    made = Publisher(driver_client(cluster, accounts), last, driver_name=DRIVER, node_name=NODE)
    yield made
    made.stop()


def content(
    gpus: tuple[GpuFacts, ...] = CARDS, unclean: tuple[PciAddress, ...] = ()
) -> Callable[[ServerFeatures], Inventory]:
    ranks = {gpu.pci_address: rank for rank, gpu in enumerate(CARDS)}
    taint = taint_of_unclean(DRIVER, WHY)

    def tainted(gpu: PciAddress, _placement: MigPlacement | None) -> tuple[DeviceTaint, ...]:
        return (taint,) if gpu in unclean else ()

    return lambda features: take_inventory(InventoryRules(DRIVER), gpus, ranks, taints=tainted, features=features)


def slices(cluster: Cluster) -> list[Slice]:
    found: list[Slice] = cluster.call("GET", f"{SLICES}?fieldSelector=spec.nodeName%3D{NODE}")["items"]
    return found


def versions(cluster: Cluster) -> dict[str, str]:
    return {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for s in slices(cluster)}


def devices(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {device["name"]: device for s in slices(cluster) for device in s["spec"].get("devices", [])}


def is_whole(found: list[Slice]) -> bool:
    pools = [s["spec"]["pool"] for s in found]
    return bool(pools) and all(pool == pools[0] for pool in pools) and pools[0]["resourceSliceCount"] == len(pools)


def test_eight_cards_are_published_whole(cluster: Cluster, publisher: Publisher, own_node: str) -> None:
    publisher.publish(content())

    found = slices(cluster)
    assert [s["metadata"]["name"] for s in found] == [
        f"{index}-{DRIVER}-{NODE}" for index in ("00000", *(f"0010{i}" for i in range(8)))
    ]
    assert is_whole(found)
    assert {s["spec"]["pool"]["generation"] for s in found} == {1}
    assert len(devices(cluster)) == 208
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": own_node, "controller": True}
    assert [s["metadata"]["ownerReferences"] for s in found] == [[owner]] * 9


def test_the_server_keeps_every_field(cluster: Cluster, publisher: Publisher) -> None:
    publisher.publish(content())

    whole = devices(cluster)["gpu-3"]
    assert whole["allowMultipleAllocations"] is True
    assert whole["attributes"]["migProfile"] == {"string": ""}
    assert whole["capacity"]["sharePercent"] == {
        "value": "100",
        "requestPolicy": {"default": "100", "validRange": {"min": "5", "max": "100", "step": "5"}},
    }
    assert whole["capacity"]["memory"] == {
        "value": "81559Mi",
        "requestPolicy": {"default": "0", "validRange": {"min": "0"}},
    }
    assert whole["consumesCounters"][0]["counterSet"] == "gpu-3"
    assert len(whole["consumesCounters"][0]["counters"]) == 14


def test_what_is_published_already_is_not_written_again(cluster: Cluster, publisher: Publisher) -> None:
    publisher.publish(content())
    before = versions(cluster)
    publisher.publish(content())
    assert versions(cluster) == before


def test_a_restarted_driver_writes_nothing(
    cluster: Cluster, accounts: ServiceAccounts, publisher: Publisher, last: LastPublished
) -> None:
    publisher.publish(content())
    before = versions(cluster)
    Publisher(driver_client(cluster, accounts), last, driver_name=DRIVER, node_name=NODE).publish(content())
    assert versions(cluster) == before


def test_a_taint_is_one_write_and_keeps_its_time(cluster: Cluster, publisher: Publisher) -> None:
    publisher.publish(content())
    before = versions(cluster)
    publisher.publish(content(unclean=(CARDS[2].pci_address,)))

    changed = {name for name, version in versions(cluster).items() if version != before[name]}
    assert changed == {f"00102-{DRIVER}-{NODE}"}
    (taint,) = devices(cluster)["gpu-2-mig-3g40gb-4"]["taints"]
    assert (taint["key"], taint["value"], taint["effect"]) == (f"{DRIVER}/unclean", WHY, "NoSchedule")
    assert taint["timeAdded"]
    assert {s["spec"]["pool"]["generation"] for s in slices(cluster)} == {1}

    renamed = tuple(replace(gpu, brand="Other") for gpu in CARDS)
    publisher.publish(content(renamed, unclean=(CARDS[2].pci_address,)))
    assert devices(cluster)["gpu-2-mig-3g40gb-4"]["taints"] == [taint]
    assert {s["spec"]["pool"]["generation"] for s in slices(cluster)} == {2}


def test_a_card_that_leaves_takes_its_slice_along(cluster: Cluster, publisher: Publisher) -> None:
    publisher.publish(content())
    publisher.publish(content(CARDS[:7]))

    assert is_whole(slices(cluster))
    assert {name for name in devices(cluster) if "-mig-" not in name} == {f"gpu-{i}" for i in range(7)}


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


@pytest.fixture
def held_card(cluster: Cluster, own_node: str) -> Iterator[str]:  # its slices must be there
    """A claim that holds half of the last card; gone when the test has let go of it or ended."""
    exactly = {"deviceClassName": "any", "capacity": {"requests": {"sharePercent": "50"}}}
    claim = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "held-card"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }  # fmt: skip
    made = cluster.call("POST", CLAIMS, claim)
    share = {"shareID": "00000000-0000-4000-8000-00000000000a", "consumedCapacity": {"sharePercent": "50"}}
    result = {"request": "gpu", "driver": DRIVER, "pool": NODE, "device": "gpu-7", **share}
    made["status"] = {"allocation": {"devices": {"results": [result]}}}
    cluster.call("PUT", f"{CLAIMS}/held-card/status", made)
    yield "held-card"
    let_go(cluster)


def let_go(cluster: Cluster) -> None:
    if cluster.raw("DELETE", f"{CLAIMS}/held-card").status == 200:
        cluster.raw("PATCH", f"{CLAIMS}/held-card", b'{"metadata":{"finalizers":null}}', "application/merge-patch+json")


@pytest.mark.usefixtures("held_card")
def test_a_card_that_is_gone_stays_published_while_a_claim_holds_it(
    cluster: Cluster, accounts: ServiceAccounts, publisher: Publisher, last: LastPublished
) -> None:
    publisher.publish(content())
    again = Publisher(driver_client(cluster, accounts), last, driver_name=DRIVER, node_name=NODE)
    again.publish(content(CARDS[:7]))  # a driver that has just started and sees seven cards
    assert is_whole(slices(cluster))
    assert {name for name in devices(cluster) if name.startswith("gpu-7")} == {"gpu-7"}
    (taint,) = devices(cluster)["gpu-7"]["taints"]
    assert (taint["key"], taint["value"], taint["effect"]) == (f"{DRIVER}/withdrawn", "not-served", "NoSchedule")
    (counters,) = (s["spec"]["sharedCounters"] for s in slices(cluster) if "sharedCounters" in s["spec"])
    assert "gpu-7" in {each["name"] for each in counters}

    cluster.call("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3D{NODE}")  # as a kubelet does at its start
    again.publish(content(CARDS[:7]))
    assert is_whole(slices(cluster))
    assert devices(cluster)["gpu-7"]["taints"][0]["value"] == "not-served"
    again.reconsider()
    assert "gpu-7" in devices(cluster)

    let_go(cluster)
    again.reconsider()
    assert is_whole(slices(cluster))
    assert "gpu-7" not in devices(cluster)


@pytest.mark.usefixtures("held_card")
def test_a_counter_that_a_claim_draws_on_is_lowered_when_it_has_gone(cluster: Cluster, publisher: Publisher) -> None:
    def memory(card_name: str) -> str:
        sets = (each for s in slices(cluster) for each in s["spec"].get("sharedCounters", []))
        return str(next(each["counters"]["memory"]["value"] for each in sets if each["name"] == card_name))

    publisher.publish(content())
    before = memory("gpu-7")
    less = tuple(replace(gpu, memory=gpu.memory - 2**30) for gpu in CARDS)
    publisher.publish(content(less))
    assert memory("gpu-7") == before != memory("gpu-6")
    assert devices(cluster)["gpu-7"]["taints"][0]["value"] == "fewer-counters"
    assert "taints" not in devices(cluster)["gpu-6"]
    let_go(cluster)
    publisher.reconsider()
    assert memory("gpu-7") == memory("gpu-6")
    assert "taints" not in devices(cluster)["gpu-7"]


def test_slices_that_the_kubelet_deletes_come_back(cluster: Cluster, publisher: Publisher) -> None:
    publisher.publish(content())
    publisher.start()
    gone = {s["metadata"]["uid"] for s in slices(cluster)}
    cluster.call("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3D{NODE}")

    def is_back() -> bool:
        found = slices(cluster)
        return len(found) == 9 and is_whole(found) and gone.isdisjoint(s["metadata"]["uid"] for s in found)

    wait_until(is_back, "nine new slices of one generation")


def test_a_slice_that_somebody_edits_is_put_right(cluster: Cluster, publisher: Publisher) -> None:
    publisher.publish(content())
    publisher.start()
    (edited,) = (s for s in slices(cluster) if s["metadata"]["name"].startswith("00104-"))
    for device in edited["spec"]["devices"]:
        device["attributes"]["productName"] = {"string": "Voodoo2"}
    cluster.call("PUT", f"{SLICES}/{edited['metadata']['name']}", edited)

    wait_until(
        lambda: devices(cluster)["gpu-4"]["attributes"]["productName"]["string"] == "NVIDIA H100 80GB HBM3",
        "the product name is right again",
    )


def updates(cluster: Cluster) -> int:
    """How many updates of slices of this node the API server has seen."""
    return sum(line["verb"] == "update" and NODE in line["requestURI"] for line in cluster.audit())


def test_two_drivers_that_differ_do_not_race_each_other(
    cluster: Cluster, accounts: ServiceAccounts, publisher: Publisher, last: LastPublished
) -> None:
    """As in an update to a version that publishes more: each undoes the other, ever more slowly, until one has gone."""
    newer = Publisher(driver_client(cluster, accounts), last, driver_name=DRIVER, node_name=NODE)
    publisher.publish(content(CARDS[:1]))
    publisher.start()
    before = updates(cluster)
    newer.publish(content(tuple(replace(gpu, brand="Newer") for gpu in CARDS[:1])))
    newer.start()
    time.sleep(5)  # time enough for hundreds of writes
    assert {s["spec"]["pool"]["generation"] for s in slices(cluster)} == {1}  # one slice differs
    assert 2 < updates(cluster) - before < 25
    publisher.stop()
    newer.publish(content(tuple(replace(gpu, brand="Newer") for gpu in CARDS[:1])))
    assert devices(cluster)["gpu-0"]["attributes"]["brand"] == {"string": "Newer"}
    newer.stop()


def test_a_new_node_of_the_same_name_gets_slices_of_its_own(
    cluster: Cluster, accounts: ServiceAccounts, publisher: Publisher, last: LastPublished
) -> None:
    publisher.publish(content())
    cluster.call("DELETE", f"{NODES}/{NODE}")
    uid = make_node(cluster)
    # The old token went with the old Node.
    again = Publisher(driver_client(cluster, accounts), last, driver_name=DRIVER, node_name=NODE)
    again.publish(content())
    again.start()

    def is_owned() -> bool:
        found = slices(cluster)
        owners = {s["metadata"]["ownerReferences"][0]["uid"] for s in found}
        return len(found) == 9 and is_whole(found) and owners == {uid}

    # The garbage collector may still take slices of the old owner away; the watch brings them back.
    wait_until(is_owned, "nine slices that the new Node owns", seconds=60)
    again.stop()


def test_a_current_server_has_every_feature(cluster: Cluster, accounts: ServiceAccounts, own_node: str) -> None:
    assert detect_features(driver_client(cluster, accounts), DRIVER, NODE) == ServerFeatures()
    assert slices(cluster) == []
