"""Values that use every value of the chart, and how to find an object, a pod and its variables among those rendered."""

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
        "healthEvicts": "reset",
        "timeSlices": 4,
        "mpsReserve": "1Gi",
        "logLevel": "debug",
        "resetWaitSeconds": 300,
    },
}


def named(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = [item for item in objects if item["kind"] == kind and item["metadata"]["name"] == name]
    return found


def pod_spec(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = named(objects, kind, name)["spec"]["template"]["spec"]
    return spec


def environment(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, str | None]:
    """Variable → its text, or None where it comes from elsewhere."""
    (container,) = pod_spec(objects, kind, name)["containers"]
    return {entry["name"]: entry.get("value") for entry in container["env"]}
