"""Whatever a client writes, the API server refuses it or the controllers live with it; a good pod then still runs."""

from contextlib import suppress
from typing import Any

import pytest

from dra.errors import DraError
from simulator import kinds
from simulator.store import Object
from tests.simulator.clusters import NAMESPACE, Living, device_class, node, pod, slice_of, template, template_of

ALIEN = "имя"


def affinity(operator: str, key: str = "a", values: Any = ("b",)) -> dict[str, Any]:
    requirement = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def deployment(**spec: Any) -> Object:
    labels = {"app": "w"}
    body = {"replicas": 1, "selector": {"matchLabels": labels}}
    body |= {"template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}
    meta = {"name": "w", "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": body | spec}


def claim(*requests: dict[str, Any]) -> Object:
    spec = template_of("x", *requests)["spec"]["spec"]
    meta = {"name": "c", "namespace": NAMESPACE}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def of(name: str) -> list[dict[str, str]]:
    return [{"name": "gpu", "resourceClaimName": name}]


def broken_class(expression: str) -> Object:
    return device_class("broken", selectors=[{"cel": {"expression": expression}}])


GPU = {"name": "gpu", "exactly": {"deviceClassName": "x"}}
OBJECTS: list[list[Object]] = [
    [pod("p", requests={"cpu": "abc"})],
    [pod("p", requests={"cpu": "-1"})],
    [pod("p", requests={"memory": "1e400"})],
    [pod("p", requests={"x.example.com/q": "1.5"})],
    [pod("p", requests={ALIEN: "1"})],
    [pod("p", nodeName="nowhere")],
    [pod("p", nodeName="n1", requests={"cpu": "1000"})],
    [pod("p", affinity=affinity("Bogus"))],
    [pod("p", affinity=affinity("Gt", values=("x",)))],
    [pod("p", affinity=affinity("In", key="bad key!"))],
    [pod("p", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}})],
    [pod("p", nodeSelector={"a b": "c d"})],
    [pod("p", tolerations=[{"operator": "Nope", "key": "a"}])],
    [pod("p", priorityClassName="none")],
    [pod("p", initContainers=[{"name": "i", "image": "x", "resources": {"limits": {"cpu": "1"}}}])],
    [pod("p", resourceClaims=[{"name": "gpu"}])],
    [pod("p", resourceClaims=[*of("c"), *of("c")]), claim(GPU)],
    [pod("p", resourceClaims=of("missing"))],
    [claim(), pod("p", resourceClaims=of("c"))],
    [claim({"name": "gpu"}), pod("p", resourceClaims=of("c"))],
    [claim({"name": "gpu", "exactly": {"deviceClassName": "x", "count": 10**9}}), pod("p", resourceClaims=of("c"))],
    [claim(GPU | {"exactly": {"deviceClassName": "x", "allocationMode": "All"}}), pod("p", resourceClaims=of("c"))],
    [claim({"name": ALIEN, "exactly": {"deviceClassName": ALIEN}}), pod("p", resourceClaims=of("c"))],
    [broken_class("device.driver =="), template("b", "broken"), pod("p", "b")],
    [broken_class("[1, 2].map(x, [1, 2].map(y, x * y)) == 3"), template("b", "broken"), pod("p", "b")],
    [broken_class("device.attributes['none'].x == 1"), template("b", "broken"), pod("p", "b")],
    [broken_class("device.capacity[device.driver].x.isLessThan(1)"), template("b", "broken"), pod("p", "b")],
    [node("bare") | {"status": {}}],
    [node("odd") | {"status": {"allocatable": {"cpu": "many", "pods": "x"}}}],
    [node("tainted", taints=[{"key": "", "effect": "Whatever"}])],
    [slice_of("n1", {"name": "d9", "capacity": {"m": {"value": "abc"}}}) | {"metadata": {"name": "odd"}}],
    [slice_of("n1", {"name": "d0"}, {"name": "d0"}) | {"metadata": {"name": "twice"}}],
    [deployment(replicas=-1)],
    [deployment(replicas=0)],
    [deployment(selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})],
    [deployment(selector={})],
    [deployment(strategy={"rollingUpdate": {"maxSurge": "abc%", "maxUnavailable": "10"}})],
    [deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})],
    [deployment(template={"spec": {"containers": []}})],
    [deployment() | {"metadata": {"name": "w" * 300, "namespace": NAMESPACE}}],
    [template("t" * 300), pod("p" * 200, "t" * 300)],
]  # fmt: skip


@pytest.mark.parametrize("given", OBJECTS, ids=[str(number) for number in range(len(OBJECTS))])
def test_it_is_refused_or_lived_with(given: list[Object]) -> None:
    cluster = Living()
    cluster.add(node("n1"), slice_of("n1"), node("n2"), slice_of("n2"), device_class("x"), template("one"))
    for each in given:
        with suppress(DraError):
            cluster.add(each)
    cluster.pass_seconds(2)
    for workload in cluster.store.all(kinds.DEPLOYMENT):
        cluster.change(kinds.DEPLOYMENT, workload["metadata"]["name"], replicas=2)
    cluster.add(pod("good", "one", nodeSelector={"kubernetes.io/hostname": "n2"}))
    cluster.pass_seconds(3)
    cluster.pass_seconds(3)
    assert cluster.pod("good")["status"]["phase"] == "Running"
