"""Prepare against a real API server, as the driver's pod on its node: claims read, statuses written and kept.

The cards are the stand-in's; claims are allocated by hand, so no scheduler and no kubelet has a part in this.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from dra.kube.client import KubeClient
from dra.names import ClaimRef, ClaimUID
from nodedriver.claimstatus import StatusSources, StatusWriter
from nodedriver.driver import Failed, Prepared
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from tests.nodedriver.apiserver import Store
from tests.nodedriver.claims import DRIVER, NODE
from tests.nodedriver.machine import Machine, short_folder

OWN_NODE = "status-node"
NAMESPACE = "status-team"
NODES = "/api/v1/nodes"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
SHARE_A, SHARE_B = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    cluster.make_namespace(NAMESPACE)
    return apply_roles(cluster, namespace="status-system", teams={}, driver_name=DRIVER, prefix="portico:")


@pytest.fixture(scope="module")
def driver_client(cluster: Cluster, accounts: ServiceAccounts) -> Iterator[KubeClient]:
    """As the driver's pod on a node: its ServiceAccount, by a token that is bound to the node."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": OWN_NODE}, "spec": {"unschedulable": True}}
    cluster.call("POST", NODES, node)
    yield KubeClient.from_environment(
        str(cluster.service_account_kubeconfig(accounts.namespace, accounts.driver, node=OWN_NODE))
    )
    cluster.call("DELETE", f"{NODES}/{OWN_NODE}")


@pytest.fixture
def machine(cluster: Cluster, accounts: ServiceAccounts, driver_client: KubeClient) -> Iterator[Machine]:
    """Stand-in cards and the driver's verbs; the API server is the cluster's."""
    user = f"system:serviceaccount:{accounts.namespace}:{accounts.driver}"
    with short_folder() as folder:
        (folder / "kubeconfig").write_text(cluster.kubeconfig(user).read_text())
        made = Machine(folder, Store())
        made.start_supervisor()
        yield made
        made.close()
    cluster.kubectl("delete", "resourceclaims", "--all", f"--namespace={NAMESPACE}")


@pytest.fixture
def statuses(machine: Machine, driver_client: KubeClient) -> Iterator[StatusWriter]:
    sources = sources_of(machine)
    writer = StatusWriter(DRIVER, driver_client, sources)
    writer.start()
    yield writer
    writer.stop()


def allocate(cluster: Cluster, name: str, result: dict[str, Any]) -> ClaimRef:
    """Make a claim and write an allocation into it, as the scheduler does."""
    exactly = {"deviceClassName": "any", "capacity": {"requests": {"sharePercent": "25"}}}
    made = cluster.call(
        "POST",
        CLAIMS,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        },
    )
    fields = [{"key": "metadata.name", "operator": "In", "values": [OWN_NODE]}]
    made["status"] = {
        "allocation": {
            "devices": {"results": [{"request": "gpu", "driver": DRIVER, "pool": NODE, **result}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        }
    }
    cluster.call("PUT", f"{CLAIMS}/{name}/status", made)
    return ClaimRef(NAMESPACE, name, ClaimUID(made["metadata"]["uid"]))


def share(percent: int, share_id: str) -> dict[str, Any]:
    return {"device": "gpu-0", "shareID": share_id, "consumedCapacity": {"sharePercent": str(percent), "memory": "0"}}


def devices(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.call("GET", f"{CLAIMS}/{name}")["status"].get("devices", [])
    return found


def sources_of(machine: Machine) -> StatusSources:
    """A healthy machine on which no process was seen."""
    return StatusSources(
        read=machine.prepared.read,
        ailing=lambda _gpu, _part: (),
        seen=lambda _uid, _cdi: None,
        protocol=lambda _uuid: 2,
    )


def enforced_by(cluster: Cluster, name: str) -> str:
    found = devices(cluster, name)
    return str(found[0]["data"]["enforcedBy"]) if found else ""


def test_shares_of_a_card_tell_in_their_claims_who_enforces_them(
    cluster: Cluster, machine: Machine, statuses: StatusWriter
) -> None:
    quarter, half = allocate(cluster, "quarter", share(25, SHARE_A)), allocate(cluster, "half", share(50, SHARE_B))
    answer = machine.driver.prepare(quarter)
    assert isinstance(answer, Prepared), answer
    assert answer.devices[0].share_id == SHARE_A
    statuses.wish([quarter.uid])
    wait_until(lambda: enforced_by(cluster, "quarter") == "Server", "the status of the first share")

    assert isinstance(machine.driver.prepare(half), Prepared)
    statuses.wish([quarter.uid, half.uid])
    wait_until(lambda: enforced_by(cluster, "quarter") == "ClientEnvironment", "the first share's status, rewritten")
    wait_until(lambda: enforced_by(cluster, "half") == "Server", "the status of the second share")

    (device,) = devices(cluster, "quarter")
    assert (device["driver"], device["pool"], device["device"], device["shareID"]) == (DRIVER, NODE, "gpu-0", SHARE_A)
    assert [(c["type"], c["status"], c["reason"]) for c in device["conditions"]] == [
        ("Ready", "True", "Prepared"),
        ("MpsReady", "True", "DaemonReady"),
        ("ShareEnforced", "False", "ClientEnvironment"),
    ]
    assert device["data"]["pinnedDeviceMemoryLimit"] == "20261Mi"
    managers = {m["manager"]: m["subresource"] for m in managed_fields(cluster, "quarter") if m.get("subresource")}
    assert managers[DRIVER] == "status"

    for ref in (quarter, half):
        assert machine.driver.unprepare(ref) == ""
    assert (machine.daemons(), machine.specs()) == ({}, {})


def version(cluster: Cluster, name: str) -> str:
    return str(cluster.call("GET", f"{CLAIMS}/{name}")["metadata"]["resourceVersion"])


def test_what_a_claim_says_already_is_not_written_again(
    cluster: Cluster, machine: Machine, statuses: StatusWriter, driver_client: KubeClient
) -> None:
    """Neither by the same writer nor by the next one; a foreign field beside ours stays."""
    told, sentinel = allocate(cluster, "told", {"device": "gpu-1"}), allocate(cluster, "sentinel", {"device": "gpu-2"})
    assert isinstance(machine.driver.prepare(told), Prepared)
    statuses.wish([told.uid])
    wait_until(lambda: devices(cluster, "told"), "the first status")
    before = version(cluster, "told")
    assert isinstance(machine.driver.prepare(sentinel), Prepared)
    sources = sources_of(machine)
    following = StatusWriter(DRIVER, driver_client, sources)
    following.start()  # looks at all claims, in the order of their uids
    statuses.wish([told.uid, sentinel.uid])
    wait_until(lambda: devices(cluster, "sentinel"), "the status of the other claim")
    following.stop()
    statuses.stop()
    assert version(cluster, "told") == before


def test_a_claim_whose_devices_were_taken_away_is_left_alone(
    cluster: Cluster, machine: Machine, statuses: StatusWriter
) -> None:
    """The API server refuses a status of a device that is not allocated; nobody goes on trying that for ever."""
    taken, other = allocate(cluster, "taken", {"device": "gpu-1"}), allocate(cluster, "other", {"device": "gpu-2"})
    assert isinstance(machine.driver.prepare(taken), Prepared)
    assert isinstance(machine.driver.prepare(other), Prepared)
    cluster.raw("PATCH", f"{CLAIMS}/taken/status", b'{"status":null}', "application/merge-patch+json").expect()
    with capture_logs() as logs:
        statuses.wish([taken.uid, other.uid])
        wait_until(lambda: devices(cluster, "other"), "the status of the other claim")
        statuses.stop()
    assert devices(cluster, "taken") == []
    assert [line["event"] for line in logs] == []


def managed_fields(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.call("GET", f"{CLAIMS}/{name}")["metadata"]["managedFields"]
    return found


def test_a_status_of_a_namesake_is_left_alone(cluster: Cluster, machine: Machine, statuses: StatusWriter) -> None:
    """A claim that was deleted and made anew under its name has another uid; the old one's status is not for it."""
    old = allocate(cluster, "namesake", {"device": "gpu-1"})
    assert isinstance(machine.driver.prepare(old), Prepared)
    cluster.call("DELETE", f"{CLAIMS}/namesake")
    cluster.raw("PATCH", f"{CLAIMS}/namesake", b'{"metadata":{"finalizers":null}}', "application/merge-patch+json")
    new = allocate(cluster, "namesake", {"device": "gpu-2"})
    assert isinstance(machine.driver.prepare(new), Prepared)
    statuses.wish([old.uid, new.uid])
    wait_until(lambda: devices(cluster, "namesake"), "the status of the new claim")
    assert [device["device"] for device in devices(cluster, "namesake")] == ["gpu-2"]
    assert "it was deleted and made anew" in failure(machine.driver.prepare(old))


def test_a_claim_of_another_nodes_pool_is_not_prepared(cluster: Cluster, machine: Machine) -> None:
    ref = allocate(cluster, "elsewhere", {"device": "gpu-3", "pool": "other-node"})
    assert "is not a device of this node" in failure(machine.driver.prepare(ref))


def failure(result: Prepared | Failed) -> str:
    assert isinstance(result, Failed), result
    return result.error
