"""Pods with a claim each, one after another, and how long the kubelet says that their drivers took."""

from __future__ import annotations

import json
import random
import re
from http.client import HTTPSConnection
from typing import Any

from benchmarks.rig import NAMESPACE, OURS, PEER, Rig
from tests.cluster.controlplane import HOST
from tests.cluster.pods import await_pod, busybox_pod, create_pod, delete_pod

_WHOLE: dict[str, tuple[str, ...]] = {OURS: (f'device.attributes["{OURS}"].deviceType == "Physical"',), PEER: ()}
_PREPARE = re.compile(
    r"dra_grpc_operations_duration_seconds_(?P<part>sum|count)"
    r'\{driver_name="(?P<driver>[^"]+)",.*NodePrepareResources"\} (?P<value>\S+)'
)


def one_by_one(bench: Rig, pods: int) -> dict[str, float]:
    """Mean seconds of NodePrepareResources by driver over so many pods of each, in a random order."""
    drivers = [side.driver for side in bench.sides]
    for driver in drivers:
        _offer(bench, driver)
    before = _sums(bench)
    turns = drivers * pods
    random.shuffle(turns)
    for number, driver in enumerate(turns):
        _pod(bench, f"pod-{number}", driver)
    after = _sums(bench)
    return {driver: _mean(before.get(driver, (0.0, 0.0)), after[driver]) for driver in drivers}


def _mean(before: tuple[float, float], after: tuple[float, float]) -> float:
    seconds, calls = (now - then for now, then in zip(after, before, strict=True))
    return seconds / calls


def _offer(bench: Rig, driver: str) -> None:
    """A class of that driver's whole cards, and a template that asks for one."""
    named: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": driver}}
    selectors = [
        {"cel": {"expression": expression}} for expression in (f'device.driver == "{driver}"', *_WHOLE[driver])
    ]
    request = {"name": "gpu", "exactly": {"deviceClassName": driver}}
    template = {**named, "kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": {"requests": [request]}}}}
    template["metadata"] = {"name": driver, "namespace": NAMESPACE}
    bench.node.cluster.apply({**named, "kind": "DeviceClass", "spec": {"selectors": selectors}}, template)


def _pod(bench: Rig, name: str, driver: str) -> None:
    """One from its creation to its end."""
    cluster = bench.node.cluster
    claims = [{"name": "gpu", "resourceClaimTemplateName": driver}]
    pod = busybox_pod(name, resourceClaims=claims)
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    create_pod(cluster, pod, NAMESPACE)
    await_pod(cluster, name, namespace=NAMESPACE)
    delete_pod(cluster, name, NAMESPACE)


def _sums(bench: Rig) -> dict[str, tuple[float, float]]:
    """Seconds and calls of NodePrepareResources so far, by driver, from the kubelet's own metrics."""
    lines = _kubelet_metrics(bench).splitlines()
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        if match := _PREPARE.fullmatch(line):
            of = found.setdefault(match["driver"], {"sum": 0.0, "count": 0.0})
            of[match["part"]] += float(match["value"])
    return {driver: (of["sum"], of["count"]) for driver, of in found.items()}


def _kubelet_metrics(bench: Rig) -> str:
    """As the cluster's administrator, whose certificate the kubelet takes; it serves with one of its own making."""
    node = bench.node
    port = json.loads((node.folder / "kubelet.json").read_text())["port"]
    tls = node.cluster.access().tls()
    tls.load_verify_locations(node.folder / "kubelet-certificates" / "kubelet.crt")
    tls.check_hostname = False
    connection = HTTPSConnection(HOST, port, timeout=30, context=tls)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()
