"""A pod that uses the template of a wish, to start from. Pure."""

from __future__ import annotations

from claims.manifests.claims import DEVICE_REQUEST
from claims.manifests.yaml import Value, document
from claims.wish import Wish

IMAGE = "registry.example/replace-me:latest"  # a valid reference to a registry that can't exist (RFC 2606)

_COMMENT = """\
A pod to start from: put your own image in. For a workload
of your own copy two lists: spec.resourceClaims, and
resources.claims of each container that uses the device."""


def pod(wish: Wish) -> str:
    """The pod as YAML; its container sees the devices of the template's claim."""
    container: Value = {"name": "main", "image": IMAGE, "resources": {"claims": [{"name": DEVICE_REQUEST}]}}
    return document(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": wish.name, "namespace": wish.namespace},
            "spec": {
                "restartPolicy": "Never",
                "containers": [container],
                "resourceClaims": [{"name": DEVICE_REQUEST, "resourceClaimTemplateName": wish.name}],
            },
        },
        comment=_COMMENT,
    )
