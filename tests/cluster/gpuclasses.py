"""GPUClass objects for tests, and the chart's CRD put into a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until

FILE = Path(__file__).parents[2] / "helm" / "portico" / "crds" / "gpuclasses.portico.dev.yaml"
PATH = "/apis/portico.dev/v1alpha1/gpuclasses"
SELECTOR = 'device.driver == "gpu.example.com"'


def serve(cluster: Cluster) -> None:
    """The cluster serves the kind from here on."""
    cluster.apply(yaml.safe_load(FILE.read_text()))
    wait_until(lambda: cluster.raw("GET", PATH).status == 200, "GPUClass to be served")


def generated(*expressions: str, **more: Any) -> dict[str, Any]:
    """The part `deviceClass` of a class that makes its own DeviceClass."""
    selectors = [{"cel": {"expression": each}} for each in expressions or (SELECTOR,)]
    return {"generated": {"selectors": selectors, **more}}


def gpu_class(name: str = "h100", **spec: Any) -> dict[str, Any]:
    """A GPUClass for an existing DeviceClass, with what is given in place of that or besides."""
    plain = {"title": "H100 80 GB", "deviceClass": {"name": "nvidia-h100"}}
    return {
        "apiVersion": "portico.dev/v1alpha1",
        "kind": "GPUClass",
        "metadata": {"name": name},
        "spec": plain | spec,
    }
