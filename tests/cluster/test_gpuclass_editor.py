"""An operator makes, changes and deletes a class by the portal on a real API server; others may not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from gpuinventory.gpuclasses import derive
from gpuinventory.gpuclasses.derive import selector_of
from tests.claims.rows import put, put_fleet
from tests.cluster.chart import apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.gpuclasses import PATH, gpu_class, serve
from tests.cluster.relay import Headers, Relay
from tests.gpuinventory.gpuclasses.drivers import DEVICES, device_class, fleet_of, of_driver

SYSTEM = "portico-system"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CEL = 'device.driver == "gpu.portico.dev"'
NEW = "/gpu-classes/+new/"
VALUES = {
    "name": "training", "title": "H100 for training", "serve": "generated", "mode": "whole", "state": "open",
    "selectors": f'{CEL}\n\ndevice.attributes["gpu.portico.dev"].?deviceType.orValue("") == "Physical"',
    "config": '[{"opaque": {"driver": "gpu.portico.dev", "parameters": {"a": 1}}}]',
    "extended_resource_name": "gpu.portico.dev/training", "namespaces": "ml-team",
    "count_min": "1", "count_default": "2", "count_max": "8", "memory_min": "40Gi", "price_per_hour": "2.50",
    "store": "yes",
}  # fmt: skip
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def web(cluster: Cluster) -> str:
    """The portal's account under the chart's roles; the cluster knows GPUClass."""
    serve(cluster)
    teams = {"ml-team": ["ml-team"]}
    made = apply_roles(cluster, namespace=SYSTEM, teams=teams, driver_name="gpu.portico.dev", prefix="portico:")
    cluster.service_account_kubeconfig(SYSTEM, made.web)
    return f"system:serviceaccount:{SYSTEM}:{made.web}"


@pytest.fixture(autouse=True)
def portal(cluster: Cluster, web: str, settings: Settings, tmp_path: Path) -> Iterator[None]:
    """The portal speaks to the real cluster; no class is left."""
    put_fleet()
    with Relay(cluster.access(web)) as running:
        settings.KUBECONFIG = str(running.kubeconfig(tmp_path))
        yield
    cluster.kubectl("delete", "gpuclasses,deviceclasses", "--all")


def stored(cluster: Cluster, name: str = "training") -> dict[str, Any]:
    """The object, which the read model is told of as a worker would."""
    answer = cluster.raw("GET", f"{PATH}/{name}")
    assert answer.status == 200
    put("GPUClass", answer.body)
    found: dict[str, Any] = answer.json()
    return found


def make(as_olga: Client, **values: str) -> Any:
    return as_olga.post(NEW, VALUES | values)


def test_a_class_and_the_device_class_that_it_owns_are_made(cluster: Cluster, as_olga: Client) -> None:
    assert make(as_olga).status_code == 303

    made = stored(cluster)
    owned = cluster.call("GET", f"{CLASSES}/training")
    assert made["spec"]["count"] == {"min": 1, "default": 2, "max": 8}
    assert made["spec"]["memory"] == {"min": "40Gi"}
    assert [each["uid"] for each in owned["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    assert owned["spec"] == made["spec"]["deviceClass"]["generated"]
    assert {each["manager"] for each in made["metadata"]["managedFields"]} == {"portico"}
    written = {
        event["impersonatedUser"]["username"]
        for event in cluster.audit()
        if event.get("objectRef", {}).get("resource") == "gpuclasses" and event["verb"] == "patch"
    }
    assert written == {"portico:olga"}


def test_a_class_is_changed_and_what_was_taken_away_is_gone(cluster: Cluster, as_olga: Client) -> None:
    make(as_olga)
    stored(cluster)
    form = as_olga.get("/gpu-classes/training/edit/").context["form"]
    values = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    changed = values | {"title": "H100", "price_per_hour": "", "selectors": CEL, "store": "yes"}

    assert as_olga.post("/gpu-classes/training/edit/", changed).status_code == 303
    after = stored(cluster)["spec"]
    assert (after["title"], "pricePerHour" in after) == ("H100", False)
    assert cluster.call("GET", f"{CLASSES}/training")["spec"]["selectors"] == [{"cel": {"expression": CEL}}]

    late = as_olga.post("/gpu-classes/training/edit/", changed)  # with the resourceVersion of before
    assert late.status_code == 409
    assert "was changed while you looked at it" in unescape(late.content.decode())


def test_a_class_that_gives_up_its_own_device_class_leaves_none_behind(cluster: Cluster, as_olga: Client) -> None:
    make(as_olga)
    before = stored(cluster)["metadata"]
    values = {"serve": "name", "device_class": "physical-gpu", "namespaces": ""}
    values |= {"resource_version": before["resourceVersion"], "uid": before["uid"]}

    assert as_olga.post("/gpu-classes/training/edit/", VALUES | values).status_code == 303
    assert stored(cluster)["spec"]["deviceClass"] == {"name": "physical-gpu"}
    assert cluster.raw("GET", f"{CLASSES}/training").status == 404


def test_a_class_is_deleted_with_its_device_class(cluster: Cluster, as_olga: Client) -> None:
    make(as_olga)
    stored(cluster)

    assert as_olga.post("/gpu-classes/training/delete/").status_code == 303
    assert cluster.raw("GET", f"{PATH}/training").status == 404
    assert cluster.raw("GET", f"{CLASSES}/training").status == 404


class QuickCollector(Relay):
    """The portal's way in, with the garbage collector quicker than the portal's next request."""

    def __init__(self, cluster: Cluster, web: str) -> None:
        super().__init__(cluster.access(web))
        self._cluster = cluster

    def forward(self, method: str, target: str, headers: Headers, body: bytes) -> tuple[int, str, bytes]:
        """As a relay does; what a deleted class has owned is gone before it is answered."""
        answer = super().forward(method, target, headers, body)
        if method == "DELETE" and target.startswith(PATH):
            self._cluster.raw("DELETE", f"{CLASSES}/training")
        return answer


def test_a_device_class_that_the_garbage_collector_has_removed_is_no_fault(
    cluster: Cluster, as_olga: Client, web: str, settings: Settings, tmp_path: Path
) -> None:
    make(as_olga)
    stored(cluster)
    folder = tmp_path / "quick"
    folder.mkdir()
    with QuickCollector(cluster, web) as quick:
        settings.KUBECONFIG = str(quick.kubeconfig(folder))
        assert as_olga.post("/gpu-classes/training/delete/").status_code == 303
    deletions = [each.path for each in quick.recorded if each.method == "DELETE"]
    assert deletions == [f"{PATH}/training", f"{CLASSES}/training"]
    assert cluster.raw("GET", f"{PATH}/training").status == 404


# What is typed, the status, the words.
REFUSED = {
    "a rule of the CRD": ({"count_min": "3"}, 422, "min <= default <= max does not hold"),
    "no title": ({"title": ""}, 422, "This field is required"),
    "configuration that is no JSON": ({"config": "{"}, 422, "The configuration can't be read"),
    "configuration of another shape": ({"config": '[{"opaque": 7}]'}, 422, "The configuration can't be read"),
    "a selector that does not compile": ({"selectors": "device."}, 422, "Selector 1 can't be used"),
    "no selector": ({"selectors": ""}, 422, "selectors"),
    "a name that is none": ({"name": "H 100"}, 422, "RFC 1123"),
}


@pytest.mark.parametrize(("values", "status", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_said_and_nothing_is_stored(
    cluster: Cluster, as_olga: Client, values: dict[str, str], status: int, words: str
) -> None:
    answer = make(as_olga, **values)

    assert (answer.status_code, words in unescape(answer.content.decode())) == (status, True)
    assert cluster.call("GET", PATH)["items"] == []
    assert cluster.raw("GET", f"{CLASSES}/training").status == 404


def test_a_name_that_exists_is_not_taken_over(cluster: Cluster, as_olga: Client) -> None:
    cluster.apply(gpu_class("training"))
    answer = make(as_olga)

    assert answer.status_code == 409
    assert "A class training exists already" in unescape(answer.content.decode())
    assert cluster.call("GET", f"{PATH}/training")["spec"]["title"] == "H100 80 GB"


def test_a_device_class_of_somebody_else_is_not_taken_over(cluster: Cluster, as_olga: Client) -> None:
    foreign = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "training"}, "spec": {}}
    cluster.apply(foreign)

    assert make(as_olga).status_code == 409
    assert cluster.call("GET", PATH)["items"] == []


def test_the_cluster_refuses_others_even_where_the_portal_would_not(cluster: Cluster, web: str) -> None:
    for person, groups, allowed in (("olga", "operators", True), ("alice", "ml-team", False)):
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"portico:{person}",
                "groups": [f"portico:{groups}"],
                "resourceAttributes": {"group": "portico.dev", "resource": "gpuclasses", "verb": "patch"},
            },
        }
        answer = cluster.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert answer["status"]["allowed"] is allowed


def test_the_api_server_takes_the_selectors_of_derived_classes(cluster: Cluster) -> None:
    snapshot = fleet_of(*DEVICES, classes=[device_class("all", *[" || ".join(map(of_driver, DEVICES))])])
    selectors = [each for view in derive(snapshot, ()) for each in view.selectors]
    assert len(selectors) == 7
    assert selector_of(derive(snapshot, ())[1].traits[0]) == selectors[0]
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "derived"},
        "spec": {"selectors": [{"cel": {"expression": each}} for each in selectors]},
    }
    answer = cluster.raw("POST", f"{CLASSES}?dryRun=All", json.dumps(body).encode())
    assert answer.status == 201, answer.body
