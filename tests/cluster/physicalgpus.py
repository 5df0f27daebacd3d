"""PhysicalGPU objects for tests, and the chart's CRD put into a cluster for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until

FILE = Path(__file__).parents[2] / "helm" / "portico" / "crds" / "physicalgpus.portico.dev.yaml"
PATH = "/apis/portico.dev/v1alpha1/physicalgpus"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/physicalgpus.portico.dev"


@contextmanager
def served(cluster: Cluster) -> Iterator[None]:
    """The cluster serves the kind within; other tests want it away."""
    cluster.apply(yaml.safe_load(FILE.read_text()))
    wait_until(lambda: cluster.raw("GET", PATH).status == 200, "PhysicalGPU to be served")
    yield
    cluster.call("DELETE", CRD)
    wait_until(lambda: cluster.raw("GET", PATH).status == 404, "PhysicalGPU to be served no more")


def physical_gpu(node: str = "node-1", address: str = "0000:65:00.0", name: str = "", **more: Any) -> dict[str, Any]:
    """A card of that node; its name is the right one unless another is given."""
    return {
        "apiVersion": "portico.dev/v1alpha1",
        "kind": "PhysicalGPU",
        "metadata": {"name": name or f"{node}-{address.replace(':', '-').replace('.', '-')}"},
        "spec": {"nodeName": node, "pciAddress": address},
        **more,
    }
