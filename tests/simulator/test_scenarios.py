"""Scenarios as data: each fills a cluster without a thread, and says what is wrong where it can't."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dra.objects import ResourceSlice
from dra.objects.validate import faults
from dra.pools import PoolID
from simulator import kinds
from simulator.scenario import CLUSTERS, Pool, ScenarioError, load, pool_slice
from simulator.snapshots import read
from simulator.store import Object, Store
from simulator.world import World

NAMES = sorted(each.stem for each in CLUSTERS.glob("*.toml"))


def filled(name: str) -> Store:
    """The objects of a scenario before anything lives: nodes with a real driver have no slices yet."""
    scenario, objects = load(name)
    with TemporaryDirectory() as folder:
        world = World(scenario, objects, Path(folder))
        world.stop()
    return world.store


@pytest.fixture(scope="module", params=NAMES)
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def test_both_are_there() -> None:
    assert NAMES == ["article", "mixed"]


def test_all_slices_are_such_as_the_api_server_takes(store: Store) -> None:
    slices: list[ResourceSlice] = [read(kinds.RESOURCE_SLICE, each) for each in store.all(kinds.RESOURCE_SLICE)]
    assert [fault for each in slices for fault in faults(each)] == []
    nodes = {each["metadata"]["name"]: each["metadata"]["uid"] for each in store.all(kinds.NODE)}
    assert all(each.metadata.owner_references[0].uid == nodes[each.spec.node_name] for each in slices)


def test_templates_name_classes_that_exist(store: Store) -> None:
    classes = {each["metadata"]["name"] for each in store.all(kinds.DEVICE_CLASS)}
    asked = {
        request["exactly"]["deviceClassName"]
        for each in store.all(kinds.RESOURCE_CLAIM_TEMPLATE)
        for request in each["spec"]["spec"]["devices"]["requests"]
    }
    assert asked <= classes


@pytest.mark.parametrize("name", NAMES)
def test_actors_use_templates_of_their_own_namespace(name: str) -> None:
    scenario, objects = load(name)
    templates = {
        (each["metadata"]["namespace"], each["metadata"]["name"])
        for each in objects
        if each["kind"] == "ResourceClaimTemplate"
    }
    assert {(actor.namespace, actor.template) for actor in scenario.actors} <= templates
    labels = [group.labels.items() for group in scenario.groups]
    assert all(any(actor.node_selector.items() <= each for each in labels) for actor in scenario.actors)
    priorities = {each["metadata"]["name"] for each in objects if each["kind"] == "PriorityClass"}
    assert {actor.priority_class for actor in scenario.actors} - {""} <= priorities


def test_curated_classes_show_each_state_and_bound(store: Store) -> None:
    classes = {each["metadata"]["name"]: each["spec"] for each in store.all(kinds.GPU_CLASS)}
    assert len({spec["order"] for spec in classes.values()}) == len(classes)
    (paused,) = (spec for spec in classes.values() if spec["state"] == "paused")
    assert paused["message"].endswith(".")
    (replaced,) = (spec for spec in classes.values() if spec["state"] == "replaced")
    assert classes[replaced["replacedBy"]]["state"] == "open"
    (bounded,) = (name for name, spec in classes.items() if spec.get("namespaces"))
    made = store.get(kinds.DEVICE_CLASS, bounded)
    assert made["spec"] == classes[bounded]["deviceClass"]["generated"]
    owner = store.get(kinds.GPU_CLASS, bounded)["metadata"]["uid"]
    assert [each["uid"] for each in made["metadata"]["ownerReferences"]] == [owner]
    served = {each["metadata"]["name"] for each in store.all(kinds.DEVICE_CLASS)}
    assert {spec["deviceClass"].get("name", bounded) for spec in classes.values()} <= served


def test_a_card_is_tainted_that_exists(store: Store) -> None:
    (rule,) = store.all(kinds.DEVICE_TAINT_RULE)
    wanted = rule["spec"]["deviceSelector"]
    devices = [
        device["name"]
        for each in store.all(kinds.RESOURCE_SLICE)
        if each["spec"]["pool"]["name"] == wanted["pool"]
        for device in each["spec"].get("devices", ())
    ]
    assert wanted["device"] in devices


def test_the_article_has_eight_nodes_of_eight_h100_two_of_them_with_the_real_driver() -> None:
    scenario, _ = load("article")
    assert [(group.machine, len(group.names)) for group in scenario.groups] == [
        ("h100x8", count) for count in (2, 3, 3)
    ]
    assert [len(group.names) for group in scenario.groups if group.real_driver] == [2]
    slices = filled("article").all(kinds.RESOURCE_SLICE)
    assert Counter(each["spec"]["nodeName"] for each in slices) == {f"node-{number}": 9 for number in range(3, 9)}
    uuids = {uuid for each in slices for uuid in _uuids(each)}
    assert len(uuids) == 48  # each card is one of its own


def _uuids(slice_: Object) -> list[str]:
    whole = [each for each in slice_["spec"].get("devices", ()) if each["attributes"].get("uuid")]
    return [
        each["attributes"]["uuid"]["string"]
        for each in whole
        if each["attributes"]["deviceType"]["string"] == "Physical"
    ]


def test_the_mixed_fleet_has_what_real_ones_have() -> None:
    store = filled("mixed")
    slices: list[ResourceSlice] = [read(kinds.RESOURCE_SLICE, each) for each in store.all(kinds.RESOURCE_SLICE)]
    pools: dict[PoolID, list[ResourceSlice]] = {}
    for each in slices:
        pools.setdefault(PoolID(each.spec.driver, each.spec.pool.name), []).append(each)
    incomplete = [pool.name for pool, those in pools.items() if len(those) < those[0].spec.pool.resource_slice_count]
    assert incomplete == ["h200-3"]
    assert {pool.driver for pool in pools} == {"gpu.portico.dev", "gpu.amd.com", "gpu.intel.com"}
    a100 = [device for each in pools[PoolID("gpu.portico.dev", "a100-1")] for device in each.spec.devices]
    assert [device.attributes["deviceType"].string for device in a100] == ["Physical", "TimeSliced"] * 8
    (amd,) = pools[PoolID("gpu.amd.com", "mi300x-1")]
    assert [device.name for device in amd.spec.devices] == [f"gpu-{number}-128" for number in range(8)]
    assert amd.spec.devices[3].attributes["driverVersion"].version == "6.12.12"
    assert amd.spec.devices[3].attributes["renderIndex"].int_ == 152
    (rule,) = store.all(kinds.DEVICE_TAINT_RULE)
    assert rule["spec"]["deviceSelector"]["device"] == "gpu-3"


def test_attributes_of_a_pool_are_typed_and_numbered() -> None:
    attributes = {"a": "x{n}", "b": 1, "c": True, "d": {"version": "1.0.0"}, "e": ["p", "q"]}
    pool = Pool(node="n", driver="d", count=2, device="dev-{n}", attributes=attributes, capacity={"m": "1Gi"})
    devices = pool_slice(pool, {"kind": "Node"})["spec"]["devices"]
    assert devices[1] == {
        "name": "dev-1",
        "attributes": {
            "a": {"string": "x1"},
            "b": {"int": 1},
            "c": {"bool": True},
            "d": {"version": "1.0.0"},
            "e": {"string": "q"},
        },
        "capacity": {"m": {"value": "1Gi"}},
    }


def test_an_unknown_scenario_names_those_that_exist() -> None:
    with pytest.raises(ScenarioError, match="There is no scenario 'none'; there are article, mixed"):
        load("none")
