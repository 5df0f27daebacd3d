"""What the worker finds out about real API servers with these gates or those, and what it does to them: nothing.

Which gates are on by default: `pkg/features/kube_features.go` of 1.37.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dra.features import Features
from dra.kube.client import KubeClient
from dra.kube.errors import UnreachableError
from gpuinventory.capabilities import Capabilities
from gpuinventory.selectors import capabilities, held
from gpuinventory.services.capabilities import AGAIN, Look, detect, refresh
from gpuinventory.services.lease import due_kinds
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.gpuinventory.fleet import DRIVER

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
SYSTEM = "probing-system"
KINDS = ("resourceslices", "resourceclaimtemplates", "deviceclasses")
V1 = {"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"}
ALPHA = {"DRAListTypeAttributes", "DRADeviceCompatibilityGroups", "DRAOptionalNodeOperations", "DRADerivedAttributes"}
# Beta, but off while the minimum compatibility version is 1.36, as it is by default.
FRACTIONS = "DRAFractionalCapacityRange"
# Those of 1.36 that can still be switched off.
LATE = {"DRAConsumableCapacity", "DRAPartitionableDevices", "DRADeviceBindingConditions", "DRADeviceTaints"}


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    return apply_roles(cluster, namespace=SYSTEM, teams={"ml-team": ["ml-team"]}, driver_name=DRIVER, prefix="portico:")


@pytest.fixture(scope="module")
def worker(cluster: Cluster, accounts: ServiceAccounts) -> Path:
    """The kubeconfig of the worker's ServiceAccount, with the rights that the chart gives."""
    return cluster.service_account_kubeconfig(accounts.namespace, accounts.worker)


@pytest.fixture(scope="module")
def own(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster of this file, whose API server is started anew with other flags."""
    with Cluster() as running:
        yield running


def seen(kubeconfig: Path, namespace: str = SYSTEM) -> Capabilities:
    return detect(KubeClient.from_environment(str(kubeconfig)), namespace, NOW)


def seen_with(cluster: Cluster, *flags: str) -> Capabilities:
    cluster.stop_program("kube-apiserver")
    cluster.flags["kube-apiserver"] = flags
    cluster.start_program("kube-apiserver")
    return seen(cluster.kubeconfig(), "default")


def gates(names: set[str], *, on: bool) -> str:
    return "--feature-gates=" + ",".join(f"{name}={str(on).lower()}" for name in sorted(names))


def off(found: Capabilities) -> set[str]:
    assert {gate.state for gate in found.gates} <= {"on", "off"}
    return {gate.name for gate in found.gates if gate.state == "off"}


def test_1_37_as_it_comes_seen_with_the_worker_s_rights(worker: Path) -> None:
    found = seen(worker)
    assert off(found) == ALPHA | {FRACTIONS}
    assert (found.version, found.minor, set(found.served["v1"])) == ("v1.37.2", 37, V1 | {"devicetaintrules"})
    assert found.features == Features()


def test_gates_that_are_off(own: Cluster) -> None:
    found = seen_with(own, gates(LATE | {FRACTIONS, "DRADeviceTaintRules"}, on=False))
    assert off(found) == LATE | ALPHA | {FRACTIONS}  # the API server does not look at DRADeviceTaintRules itself
    features = found.features
    assert {features.consumable_capacity, features.partitionable_devices, features.device_taints} == {False}
    assert features.prioritized_list
    assert found.lacks("DRAConsumableCapacity") == (
        "This cluster has no shares of a device: the API server has feature gate DRAConsumableCapacity off "
        "(it drops spec.devices[0].allowMultipleAllocations)."
    )
    assert found.lacks("DRAPrioritizedList") == ""


def test_alpha_gates_that_are_on(own: Cluster) -> None:
    found = seen_with(own, gates(ALPHA | {FRACTIONS}, on=True), "--min-compatibility-version=1.37")
    assert off(found) == set()
    assert found.features.allocator == "experimental"


def test_an_emulated_1_36_serves_no_taint_rules(own: Cluster) -> None:
    found = seen_with(own, "--emulated-version=1.36")
    assert off(found) == ALPHA | {FRACTIONS, "DRADeviceTaintRules"}
    assert (found.minor, set(found.served["v1"])) == (36, V1)
    assert found.features == Features.of_release("1.36")


def test_an_emulated_1_36_with_the_beta_version_serves_them_where_nobody_reads_them(own: Cluster) -> None:
    beta = "resource.k8s.io/v1beta2"
    found = seen_with(own, "--emulated-version=1.36", f"--runtime-config={beta}=true")
    assert "devicetaintrules are served in v1beta2 only" in found.lacks("DRADeviceTaintRules")


def test_an_emulated_1_34_knows_whole_devices_only(own: Cluster) -> None:
    found = seen_with(own, "--emulated-version=1.34", "--min-compatibility-version=1.34")
    assert off(found) == LATE | ALPHA | {FRACTIONS, "DRADeviceTaintRules", "DRAExtendedResource"}
    assert found.features.allocator == "stable"
    assert found.has_dra


# --- what it may, and what it leaves behind


def test_a_look_leaves_nothing_behind_and_the_worker_can_write_nothing(
    cluster: Cluster, accounts: ServiceAccounts, worker: Path
) -> None:
    user = f"system:serviceaccount:{accounts.namespace}:{accounts.worker}"
    paths = [f"/apis/resource.k8s.io/v1/{kind}" for kind in KINDS]
    before = [len(cluster.call("GET", path)["items"]) for path in paths]
    seen(worker)
    assert [len(cluster.call("GET", path)["items"]) for path in paths] == before
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "w"}, "spec": {}}
    answer = cluster.raw("POST", paths[2], json.dumps(document).encode(), user=user)
    assert answer.status == 422
    assert "the worker only tries objects out" in answer.json()["message"]
    assert cluster.raw("POST", f"{paths[2]}?dryRun=All", json.dumps(document).encode(), user=user).status == 201


def test_without_rights_nothing_is_known_and_the_release_speaks(cluster: Cluster) -> None:
    found = seen(cluster.user_kubeconfig("portico:nobody"))
    states = {gate.name: gate.state for gate in found.gates}
    assert set(states.values()) == {"unknown", "on"}
    assert [name for name, state in states.items() if state == "on"] == ["DRADeviceTaintRules"]
    assert "cannot create resource" in next(gate.evidence for gate in found.gates)
    assert found.features == Features()


# --- kept in the read model


def look(kubeconfig: Path, now: datetime = NOW) -> Look:
    return Look(
        holder="test",
        connect=lambda: KubeClient.from_environment(str(kubeconfig)),
        clock=lambda: now,
        namespace="default",
    )


@pytest.mark.django_db
def test_what_was_seen_is_kept_until_tomorrow_and_the_fleet_is_judged_by_it(own: Cluster) -> None:
    held.forget()
    assert not capabilities().is_known
    assert held.current().snapshot.features == Features()
    found = seen_with(own, gates({"DRAPartitionableDevices"}, on=False))
    refresh(look(own.kubeconfig()))
    assert (capabilities().checked_at, capabilities().gates) == (NOW, found.gates)
    assert not held.current().snapshot.features.partitionable_devices
    assert due_kinds(("Capabilities",), NOW + AGAIN - timedelta(seconds=1)) == []
    assert due_kinds(("Capabilities",), NOW + AGAIN) == ["Capabilities"]


@pytest.mark.django_db
def test_a_cluster_that_is_away_leaves_what_was_known(worker: Path, own: Cluster) -> None:
    refresh(look(worker))
    before = capabilities()
    own.stop_program("kube-apiserver")
    try:
        refresh(look(own.kubeconfig(), NOW + timedelta(days=2)))
        with pytest.raises(UnreachableError):
            seen(own.kubeconfig())
    finally:
        own.start_program("kube-apiserver")
    assert capabilities() == before
