"""Values that use every value of the chart, and how to find an object among those rendered."""

from typing import Any

NAMESPACE = "gpus"

ALL_ON: dict[str, Any] = {
    "image": {"repository": "registry.example.org/portico", "tag": "1.2.3", "pullSecrets": ["registry"]},
    "prefix": "oidc:",
    "teams": [
        {"name": "ml-team", "namespaces": ["ml-train", "ml-serve"]},
        {"name": "search", "namespaces": ["ml-serve"]},
    ],
    "users": ["alice", "bob@example.org"],
    "driverName": "gpu.deckhouse.io",
    "web": {
        "hosts": ["gpus.example.org"],
        "https": False,
        "tryWorkloads": True,
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "web", "operator": "Exists"}],
    },
    "worker": {"nodeSelector": {"zone": "a"}, "tolerations": [{"key": "web", "operator": "Exists"}]},
    "nodeDriver": {
        "driverRoot": "/run/nvidia/driver",
        "kubeletDir": "/data/kubelet",
        "cdiDir": "/run/cdi",
        "migMode": "keep",
        "mpsProtocol": 3,
        "nvidiaConfigs": True,
        "integratedCards": True,
        "deviceMetadata": True,
        "nvidiaCtk": "/driver-root/usr/bin/nvidia-ctk",
        "httpPort": 9999,
        "podAnnotations": {"prometheus.io/scrape": "true"},
        "resetWaitSeconds": 300,
    },
}


def named(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = [item for item in objects if item["kind"] == kind and item["metadata"]["name"] == name]
    return found
