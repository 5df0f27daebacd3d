"""A ResourceQuota that holds the devices of a wish's class in its namespace: for an administrator to apply. Pure.

Devices are charged when a resource claim is made, whole ones even for a share (Kubernetes, "Resource Quotas").
"""

from __future__ import annotations

from collections.abc import Iterator

from claims.manifests.yaml import document
from claims.wish import ClassFacts, Wish
from dra.names import MAX_LABEL, MAX_SUBDOMAIN

_PREFIX = "devices-"


def quota(wish: Wish, facts: ClassFacts) -> str:
    """The quota as YAML, with room for one pod of this template."""
    limit = str(wish.count)
    return document(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": _name(facts.device_class), "namespace": wish.namespace},
            "spec": {"hard": dict.fromkeys(_keys(facts), limit)},
        },
        comment=_comment(wish),
    )


def _comment(wish: Wish) -> str:
    devices = "1 device" if wish.count == 1 else f"{wish.count} devices"
    return (
        f"For an administrator. There is room for {devices} at a time,\n"
        "which is one pod of this request: raise it to what the team\n"
        "may have. A share counts as a whole device."
    )


def _keys(facts: ClassFacts) -> Iterator[str]:
    """The class's own key holds resource claims; the others refuse a pod that asks by extended resource at once."""
    yield f"{facts.device_class}.deviceclass.resource.k8s.io/devices"
    if len(facts.device_class) <= MAX_LABEL:
        yield f"requests.deviceclass.resource.kubernetes.io/{facts.device_class}"
    if facts.extended_resource:
        yield f"requests.{facts.extended_resource}"


def _name(device_class: str) -> str:
    return _PREFIX + device_class[: MAX_SUBDOMAIN - len(_PREFIX)].rstrip("-.")
