"""Extended resources: names, the class that serves one, quota charges, and the scheduler's special claim.

Expected values were worked out by hand from extendeddynamicresources.go and resource_claims.go of Kubernetes 1.37.2.
"""

from __future__ import annotations

import pytest

from dra.errors import InvalidObjectError
from dra.extended import (
    charges,
    is_served_name,
    quota_keys,
    serving_classes,
    special_claim,
)
from dra.names import is_extended_resource_name
from dra.objects import (
    Container,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceClaimSpec,
    ResourceRequirements,
)

GPU, IMPLICIT = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"


def device_class(name: str, explicit: str | None = None, created: str | None = "2026-01-01T00:00:00Z") -> DeviceClass:
    metadata = ObjectMeta(name=name, creation_timestamp=created)
    return DeviceClass(metadata=metadata, spec=DeviceClassSpec(extended_resource_name=explicit))


def container(name: str, *, restart: str = "", **quantities: str) -> Container:
    requests = {{"gpu": GPU, "implicit": IMPLICIT}.get(key, key): text for key, text in quantities.items()}
    return Container(name=name, resources=ResourceRequirements(requests=requests), restart_policy=restart)


def pod(*containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(init_containers=init, containers=containers))


@pytest.mark.parametrize(
    ("name", "explicit", "served"),
    [
        (GPU, True, True), ("gpu", False, False), ("nvidia.com/mig-1g.10gb", True, True), ("a/b/c", False, False),
        ("requests.example.com/gpu", False, False), ("kubernetes.io/gpu", False, False),
        ("x.kubernetes.io/g", False, False),
        (IMPLICIT, False, True), ("example.com/-gpu", False, False), ("Example.com/gpu", False, False),
        (f"example.com/{'g' * 63}", True, True), (f"example.com/{'g' * 64}", False, False), ("/gpu", False, False),
        (f"{'.'.join(['a' * 60] * 4)}/gpu", True, True),
        (f"{'.'.join(['a' * 60] * 4)}.aaaaaaaa/gpu", False, False),  # too long once `requests.` stands before it
    ],
)  # fmt: skip
def test_names(name: str, explicit: bool, served: bool) -> None:  # noqa: FBT001  # a table's columns
    assert (is_extended_resource_name(name), is_served_name(name)) == (explicit, served)


@pytest.mark.parametrize(
    ("older", "newer", "winner"),
    [
        (("b", "2026-01-01T00:00:00Z"), ("a", "2026-01-02T00:00:00Z"), "a"),
        (("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z"), "b"),
        (("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-01T00:00:00Z"), "a"),
        (("a", None), ("b", "2026-01-01T00:00:00Z"), "b"),
        (("a", None), ("b", None), "a"),
    ],
)
def test_the_newest_class_serves_a_name_of_equals_the_lower(
    older: tuple[str, str | None], newer: tuple[str, str | None], winner: str
) -> None:
    classes = [device_class(name, GPU, created) for name, created in (older, newer)]

    for order in (classes, classes[::-1]):
        serving = serving_classes(order)
        assert serving[GPU].metadata.name == winner
        assert {name: each.metadata.name for name, each in serving.items() if name != GPU} == {
            "deviceclass.resource.kubernetes.io/a": "a",
            "deviceclass.resource.kubernetes.io/b": "b",
        }


def test_a_creation_time_that_is_none_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidObjectError, match="/metadata/creationTimestamp is 'soon'"):
        serving_classes([device_class("a", GPU, "soon"), device_class("b", GPU)])


def test_the_quota_keys_of_a_class() -> None:
    bare = ("gpu.deviceclass.resource.k8s.io/devices", "requests.deviceclass.resource.kubernetes.io/gpu")

    assert quota_keys(device_class("gpu")) == bare
    assert quota_keys(device_class("gpu", GPU)) == (*bare, "requests.example.com/gpu")


def exactly(class_name: str = "gpu", count: int = 1, mode: str = "ExactCount", *, admin: bool = False) -> DeviceRequest:
    inner = ExactDeviceRequest(device_class_name=class_name, count=count, allocation_mode=mode, admin_access=admin)
    return DeviceRequest(name="r", exactly=inner)


def either(*choices: tuple[str, int, str]) -> DeviceRequest:
    alternatives = tuple(
        DeviceSubRequest(name=f"s{index}", device_class_name=name, count=count, allocation_mode=mode)
        for index, (name, count, mode) in enumerate(choices)
    )
    return DeviceRequest(name="r", first_available=alternatives)


@pytest.mark.parametrize(
    ("device_requests", "gpu", "small"),
    [
        ((exactly(),), 1, None),
        ((exactly(count=4),), 4, None),
        ((exactly(mode="All"),), 32, None),
        ((exactly(admin=True),), 1, None),
        ((either(("gpu", 2, "ExactCount"), ("gpu", 3, "ExactCount")),), 3, None),
        ((either(("gpu", 2, "ExactCount"), ("gpu", 1, "All")),), 32, None),
        ((exactly(count=2), exactly(count=2)), 4, None),
        ((either(("gpu", 1, "ExactCount"), ("small", 2, "ExactCount")),), 1, 2),
        ((either(("gpu", 1, "ExactCount"), ("small", 2, "ExactCount")), exactly("small")), 1, 3),
    ],
)
def test_charges(device_requests: tuple[DeviceRequest, ...], gpu: int, small: int | None) -> None:
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=device_requests))
    of_gpu = {
        "gpu.deviceclass.resource.k8s.io/devices": gpu,
        "requests.deviceclass.resource.kubernetes.io/gpu": gpu,
        "requests.example.com/gpu": gpu,
    }
    of_small = {
        "small.deviceclass.resource.k8s.io/devices": small,
        "requests.deviceclass.resource.kubernetes.io/small": small,
    }
    expected = {"count/resourceclaims.resource.k8s.io": 1} | of_gpu | (of_small if small else {})

    assert charges(spec, [device_class("gpu", GPU), device_class("small")]) == expected


def test_a_mode_of_the_future_and_a_missing_class_are_charged_as_upstream_does() -> None:
    future = ResourceClaimSpec(devices=DeviceClaim(requests=(exactly(mode="Some"),)))
    missing = ResourceClaimSpec(devices=DeviceClaim(requests=(exactly("gone", 2),)))

    assert charges(future, [device_class("gpu", GPU)]) == {
        "count/resourceclaims.resource.k8s.io": 1,
        "gpu.deviceclass.resource.k8s.io/devices": 0,
    }
    assert charges(missing, []) == {
        "count/resourceclaims.resource.k8s.io": 1,
        "gone.deviceclass.resource.k8s.io/devices": 2,
        "requests.deviceclass.resource.kubernetes.io/gone": 2,
    }


def asked(made: Pod, allocatable: dict[str, str] | None = None) -> tuple[dict[str, int], list[tuple[str, str, str]]]:
    """Device requests with their counts, and (container, resource, request) mappings."""
    claim = special_claim(made, [device_class("gpu", GPU)], allocatable or {})
    counts = {each.name: each.exactly.count for each in claim.device_requests if each.exactly is not None}
    return counts, [(each.container_name, each.resource_name, each.request_name) for each in claim.mappings]


def test_each_container_has_a_request_named_by_its_place_and_the_rank_of_the_resource() -> None:
    made = pod(container("a", cpu="1", gpu="1"), container("b", gpu="2", implicit="1"), container("c", cpu="1"))

    assert asked(made) == (
        {"container-0-request-1": 1, "container-1-request-0": 1, "container-1-request-1": 2},
        [
            ("b", IMPLICIT, "container-1-request-0"),
            ("a", GPU, "container-0-request-1"),
            ("b", GPU, "container-1-request-1"),
        ],
    )


@pytest.mark.parametrize(
    ("init", "containers", "counts", "mappings"),
    [
        pytest.param(
            (container("i", gpu="1"),), (container("a", gpu="2"),),
            {"container-1-request-0": 2}, [("a", "1"), ("i", "1")], id="an init container reuses what comes later",
        ),
        pytest.param(
            (container("i", gpu="3"),), (container("a", gpu="1"), container("b", gpu="1")),
            {"container-0-request-0": 1, "container-1-request-0": 1, "container-2-request-0": 1},
            [("a", "1"), ("b", "2"), ("i", "1"), ("i", "2"), ("i", "0")], id="and asks for what is missing",
        ),
        pytest.param(
            (container("i", gpu="2"), container("j", gpu="4"), container("k", gpu="3")), (container("a", gpu="1"),),
            {"container-1-request-0": 3, "container-3-request-0": 1},
            [("a", "3"), ("i", "3"), ("i", "1"), ("j", "3"), ("j", "1"), ("k", "3"), ("k", "1")],
            id="of several init containers the maximum counts",
        ),
        pytest.param(
            (container("s", restart="Always", gpu="1"),), (container("a", gpu="1"),),
            {"container-0-request-0": 1, "container-1-request-0": 1}, [("s", "0"), ("a", "1")],
            id="a sidecar has its own",
        ),
        pytest.param(
            (container("s", restart="Always", gpu="2"), container("i", gpu="2")), (container("a", cpu="1"),),
            {"container-0-request-0": 2, "container-1-request-0": 2}, [("s", "0"), ("i", "1")],
            id="what started earlier is no longer free",
        ),
        pytest.param(
            (container("i", gpu="2"), container("s", restart="Always", gpu="2")), (container("a", cpu="1"),),
            {"container-1-request-0": 2}, [("s", "1"), ("i", "1")], id="a later sidecar's devices are still free",
        ),
        pytest.param((), (container("a", gpu="0"), container("b", gpu="1.0")), {}, [], id="no whole number, none"),
    ],
)  # fmt: skip
def test_init_containers(
    init: tuple[Container, ...],
    containers: tuple[Container, ...],
    counts: dict[str, int],
    mappings: list[tuple[str, str]],
) -> None:
    expected = [(name, GPU, f"container-{index}-request-0") for name, index in mappings]

    assert asked(pod(*containers, init=init)) == (counts, expected)


@pytest.mark.parametrize(
    ("allocatable", "served"), [({}, True), ({GPU: "0"}, True), ({GPU: "8"}, False), ({"other.com/gpu": "8"}, True)]
)
def test_a_node_that_offers_the_name_itself_serves_it(allocatable: dict[str, str], served: bool) -> None:  # noqa: FBT001
    assert bool(asked(pod(container("a", gpu="1")), allocatable)[0]) is served


def test_a_name_that_no_class_serves_is_left_to_the_node() -> None:
    assert asked(pod(container("a", **{"other.com/gpu": "1", "cpu": "1"}))) == ({}, [])
