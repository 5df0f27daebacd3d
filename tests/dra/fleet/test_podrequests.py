"""What a pod takes of its node.

Cases and sums are those of component-helpers/resource/helpers_test.go (`TestPodResourceRequests` where status counts,
`TestPodLevelResourceRequests`) of Kubernetes 1.37; the rest is reckoned by hand.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra.errors import InvalidQuantityError
from dra.fleet import pod_requests, takes_room
from dra.objects import Pod, decode

type Document = dict[str, Any]
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


def container(name: str, **requests: str) -> Document:
    return {"name": name, "resources": {"requests": requests}}


def sidecar(name: str, **requests: str) -> Document:
    return container(name, **requests) | {"restartPolicy": "Always"}


def status(name: str, allocated: Document | None = None, actual: Document | None = None) -> Document:
    resources = {"resources": {"requests": actual}} if actual else {}
    return {"name": name} | ({"allocatedResources": allocated} if allocated else {}) | resources


def pod(spec: Document, status: Document | None = None) -> Pod:
    return decode(json.dumps({"metadata": {"name": "p"}, "spec": spec, "status": status or {}}).encode(), Pod)


def taken(spec: Document, status: Document | None = None) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod_requests(pod(spec, status)).items()}


def three_ways(amount: int) -> Document:
    return {"cpu": f"{amount}m", "memory": f"{amount}M", "ephemeral-storage": f"{amount}G"}


@pytest.mark.parametrize(
    ("init", "containers", "cpu"),
    [
        ([container("i", cpu="4")], [container("c", cpu="1")], "4"),
        ([container("i", cpu="2")], [container("a", cpu="2"), container("b", cpu="3")], "5"),
        ([sidecar("s", cpu="1")], [container("c", cpu="1")], "2"),
        (
            [container("i", cpu="5"), sidecar("a", cpu="1"), sidecar("b", cpu="2"), sidecar("c", cpu="3")],
            [container("c", cpu="1")],
            "7",
        ),
        (
            [
                container("i", cpu="5"), sidecar("a", cpu="1"), sidecar("b", cpu="2"), container("j", cpu="5"),
                sidecar("c", cpu="3"),
            ],
            [container("c", cpu="1")],
            "8",
        ),
        ([sidecar("s", cpu="10"), container("i", cpu="200")], [container("c", cpu="100")], "210"),
    ],
)  # fmt: skip
def test_init_containers_run_one_by_one_and_sidecars_stay(
    init: list[Document], containers: list[Document], cpu: str
) -> None:
    assert taken({"initContainers": init, "containers": containers}) == {"cpu": cpu}


def test_overhead_comes_on_top() -> None:
    spec = {"containers": [container("a", cpu="2"), container("b", cpu="3")], "overhead": {"cpu": "1", "memory": "1Gi"}}
    assert taken(spec) == {"cpu": "6", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("asked", "allocated", "actual", "conditions", "expected"),
    [
        ({"cpu": "4"}, None, {"cpu": "2"}, INFEASIBLE, {"cpu": "2"}),
        ({"cpu": "6"}, {"cpu": "4"}, {"cpu": "2"}, INFEASIBLE, {"cpu": "4"}),
        ({"cpu": "4"}, None, {"cpu": "2"}, [], {"cpu": "4"}),
        ({"cpu": "4"}, None, {"cpu": "2"}, DEFERRED, {"cpu": "4"}),
        (
            {"cpu": "30m", "memory": "20M", "ephemeral-storage": "10G"},
            {"cpu": "20m", "memory": "10M", "ephemeral-storage": "30G"},
            {"cpu": "10m", "memory": "30M", "ephemeral-storage": "20G"},
            [],
            three_ways(30),
        ),
    ],
)
def test_while_it_is_resized_the_largest_counts(
    asked: Document, allocated: Document | None, actual: Document, conditions: list[Document], expected: Document
) -> None:
    told = {"conditions": conditions, "containerStatuses": [status("c", allocated, actual)]}
    assert taken({"containers": [container("c", **asked)]}, told) == expected
    told = {"conditions": conditions, "initContainerStatuses": [status("c", allocated, actual)]}
    assert taken({"initContainers": [sidecar("c", **asked)]}, told) == expected


def test_the_largest_of_sums_and_not_the_sum_of_the_largest() -> None:
    spec = {"containers": [container("c1", cpu="1"), container("c2", cpu="2")]}
    told = {"containerStatuses": [status("c1", {"cpu": "2"}), status("c2", {"cpu": "1"})]}
    assert taken(spec, told) == {"cpu": "3"}


def test_requests_of_the_pod_replace_those_of_containers_for_what_a_pod_can_ask_for() -> None:
    containers = [container("c", cpu="1", memory="1Gi", **{"example.com/x": "2"})]
    whole = {"requests": {"cpu": "4", "hugepages-2Mi": "4Mi", "example.com/x": "9"}}
    expected = {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "4Mi", "example.com/x": "2"}
    assert taken({"containers": containers, "resources": whole}) == expected
    assert taken({"containers": containers, "resources": {"requests": {"example.com/x": "9"}}})["example.com/x"] == "2"


def test_a_pod_that_is_resized_as_a_whole() -> None:
    spec = {"containers": [container("c", cpu="1")], "resources": {"requests": {"cpu": "4"}}}
    given = {"allocatedResources": {"cpu": "6"}, "resources": {"requests": {"cpu": "5"}}}
    assert taken(spec, given) == {"cpu": "6"}
    assert taken(spec, {"resources": {"requests": {"cpu": "3"}}, "conditions": INFEASIBLE}) == {"cpu": "3"}


def test_an_amount_that_cannot_be_read_is_an_error_of_the_domain() -> None:
    with pytest.raises(InvalidQuantityError, match="much"):
        pod_requests(pod({"containers": [container("c", cpu="much")]}))


@pytest.mark.parametrize(
    ("node", "phase", "takes"),
    [
        ("", "Pending", False),
        ("a", "Pending", True),
        ("a", "Running", True),
        ("a", "Succeeded", False),
        ("a", "Failed", False),
    ],
)
def test_only_pods_on_a_node_that_are_not_finished_take_room(node: str, phase: str, takes: bool) -> None:  # noqa: FBT001
    assert takes_room(pod({"nodeName": node}, {"phase": phase})) is takes
