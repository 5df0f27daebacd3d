"""Clusters as data: groups of nodes, pools of drivers that do not run here, workloads that come and go, objects.

A scenario is `scenarios/clusters/NAME.toml`, its objects `NAME.yaml` beside it. Reads files, makes values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from dra.errors import DraError
from simulator.store import Object

CLUSTERS: Final = Path(__file__).parent / "scenarios" / "clusters"
API: Final = "resource.k8s.io/v1"


class ScenarioError(DraError):
    """No such scenario, or one that can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Equal nodes. `machine` is a file of `scenarios/`, empty for nodes without NVIDIA cards.

    `real_driver` runs the node driver itself; else its inventory code makes the slices, less the `withheld` last ones.
    """

    names: tuple[str, ...]
    machine: str = ""
    real_driver: bool = False
    withheld: int = 0
    cpu: str = "192"
    memory: str = "2Ti"
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A driver's devices on one node, `count` alike. In texts `{n}` is the number of the device, from 0.

    A list as an attribute has one value for each device; a table, such as `{version = "1.0.0"}`, is taken as it is.
    """

    node: str
    driver: str
    count: int
    device: str
    attributes: dict[str, Any]
    capacity: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Someone who makes workloads of one sort and ends them.

    `kind` is Pod or Deployment, `template` the ResourceClaimTemplate that they use. `at_start` exist from the
    beginning; later ones come `every` so many seconds in the mean while there are fewer than `most`, and each lasts
    between the two numbers of seconds in `lasts`. Pods of a Deployment are between the numbers in `replicas`.
    """

    name: str
    namespace: str
    template: str
    at_start: int
    most: int
    every: float
    lasts: tuple[float, float]
    kind: str = "Pod"
    replicas: tuple[int, int] = (1, 1)
    image: str = "registry.example.org/workload:1"
    cpu: str = "4"
    memory: str = "16Gi"
    node_selector: dict[str, str] = field(default_factory=dict)
    priority_class: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One cluster. Namespaces are those that its objects stand in."""

    title: str
    groups: tuple[NodeGroup, ...]
    driver_name: str = "gpu.portico.dev"
    pools: tuple[Pool, ...] = ()
    actors: tuple[Actor, ...] = ()


def load(name: str) -> tuple[Scenario, list[Object]]:
    """The scenario and its objects; ScenarioError lists the names that exist."""
    path = CLUSTERS / f"{name}.toml"
    if not path.exists():
        names = ", ".join(sorted(each.stem for each in CLUSTERS.glob("*.toml")))
        raise ScenarioError(f"There is no scenario {name!r}; there are {names}.")
    try:
        scenario = msgspec.toml.decode(path.read_bytes(), type=Scenario)
    except msgspec.MsgspecError as error:
        raise ScenarioError(f"{path}: {error}") from error
    return scenario, [each for each in yaml.safe_load_all(path.with_suffix(".yaml").read_text()) if each]


def node_object(group: NodeGroup, name: str) -> Object:
    """The Node as its kubelet would register it."""
    amounts = {"cpu": group.cpu, "memory": group.memory, "pods": "250", "ephemeral-storage": "3Ti"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | group.labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pool_slice(pool: Pool, owner: Object) -> Object:
    """The ResourceSlice of a pool."""
    devices = [_device(pool, number) for number in range(pool.count)]
    place = {"name": pool.node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": pool.driver, "nodeName": pool.node, "pool": place, "devices": devices}
    meta = {"name": f"{pool.node}-{pool.driver}", "ownerReferences": [owner]}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": meta, "spec": spec}


def _device(pool: Pool, number: int) -> Object:
    attributes = {name: _attribute(value, number) for name, value in pool.attributes.items()}
    capacity = {name: {"value": value} for name, value in pool.capacity.items()}
    return {"name": pool.device.format(n=number), "attributes": attributes, "capacity": capacity}


def _attribute(value: Any, number: int) -> Object:
    match value:
        case list():
            return _attribute(value[number], number)
        case dict():
            return value
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
    return {"string": str(value).format(n=number)}
