"""The PhysicalGPU objects of a node on a real API server, written as the driver's pod with the chart's rights alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from dra.kube.client import KubeClient
from dra.names import ClaimUID
from nodedriver.holding import Checkpoint, ClaimState, PreparedClaim, PreparedDevice
from nodedriver.inventory import InventoryRules, take_inventory
from nodedriver.physicalgpus import PhysicalGpus, Sources
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.physicalgpus import PATH, served
from tests.cluster.waiting import wait_until
from tests.nodedriver.gpus import card

NODE, DRIVER = "cards-node", "gpu.cards-test.dev"
NODES = "/api/v1/nodes"
CARDS = (card(bus=0x18), card(bus=0x19, mig_enabled=True))


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> Iterator[ServiceAccounts]:
    with served(cluster):
        yield apply_roles(cluster, namespace="cards-system", teams={}, driver_name=DRIVER, prefix="portico:")


@pytest.fixture
def client(cluster: Cluster, accounts: ServiceAccounts) -> Iterator[KubeClient]:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {"unschedulable": True}}
    cluster.call("POST", NODES, node)
    yield KubeClient.of_node(str(cluster.service_account_kubeconfig(accounts.namespace, accounts.driver, node=NODE)))
    if cluster.raw("GET", f"{NODES}/{NODE}").status == 200:
        cluster.call("DELETE", f"{NODES}/{NODE}")


def keeper(client: KubeClient, *claims: PreparedClaim) -> PhysicalGpus:
    ranks = {each.pci_address: rank for rank, each in enumerate(CARDS)}
    inventory = take_inventory(InventoryRules(DRIVER), CARDS, ranks)
    checkpoint = Checkpoint(boot_id="boot", claims={each.uid: each for each in claims})
    sources = Sources(
        cards=lambda: CARDS,
        now=lambda card: card,
        checkpoint=lambda: checkpoint,
        published=lambda: inventory.slices,
        records=inventory.records,
        examine=lambda _: (),
    )
    return PhysicalGpus(client, sources, CARDS, driver_name=DRIVER, node_name=NODE)


def objects(cluster: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.call("GET", f"{PATH}?fieldSelector=spec.nodeName%3D{NODE}")["items"]
    return found


def test_cards_are_written_once_change_with_their_holders_and_go_with_their_node(
    cluster: Cluster, client: KubeClient
) -> None:
    keeper(client).keep()
    first, second = objects(cluster)
    assert first["metadata"]["name"] == "cards-node-0000-18-00-0"
    assert [each["status"]["currentState"]["mode"] for each in (first, second)] == ["Whole", "MIG"]
    assert {each["manager"] for each in first["metadata"]["managedFields"]} == {f"{DRIVER}-cards"}

    device = PreparedDevice(device_request="gpu", pool=NODE, device="gpu-0", gpu=CARDS[0].pci_address)
    held = PreparedClaim(
        namespace="team", name="claim", uid=ClaimUID("u-1"), state=ClaimState.COMPLETED, devices=(device,)
    )
    keeper(client, held).keep()
    changed, same = objects(cluster)
    assert changed["status"]["currentState"]["heldBy"] == [
        {"namespace": "team", "name": "claim", "uid": "u-1", "devices": ["gpu-0"]}
    ]
    assert same["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert changed["status"]["conditions"] == first["status"]["conditions"]

    keeper(client).keep()
    assert "heldBy" not in objects(cluster)[0]["status"]["currentState"]

    cluster.call("DELETE", f"{NODES}/{NODE}")
    wait_until(lambda: not objects(cluster), "the end of a node's cards with it", 90)
