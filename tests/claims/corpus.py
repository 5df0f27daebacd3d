"""Wishes as people could make them with every field of the form, the same ones in each run; all of them are possible.

`wishes` gives 100 of them, and 500 where PORTICO_FULL is set (`make test FULL=1`).
"""

from __future__ import annotations

import os
from hashlib import sha256
from random import Random
from typing import Any

from claims.wish import (
    Bounds,
    Choice,
    ClassFacts,
    Constraint,
    ConstraintKind,
    Interval,
    Owner,
    Preset,
    Strategy,
    Style,
    Toleration,
    Wish,
    Workload,
)
from dra.quantity import Format, Quantity

NAMESPACE = "corpus"
SIZE = 500 if os.environ.get("PORTICO_FULL") else 100
CLASSES = {
    "physical-gpu": ClassFacts(name="physical-gpu", driver="gpu.portico.dev", extended_resource="gpu.portico.dev/h100"),
    "mig-gpu": ClassFacts(name="mig-gpu", driver="gpu.portico.dev"),
    "gpu.nvidia.com": ClassFacts(name="gpu.nvidia.com", driver="gpu.nvidia.com", extended_resource="nvidia.com/gpu"),
    "hami-core-gpu.project-hami.io": ClassFacts(
        name="hami-core-gpu.project-hami.io", driver="hami-core-gpu.project-hami.io"
    ),
    "1e3": ClassFacts(name="1e3", driver="a.example.com"),
    "a" * 70: ClassFacts(name="a" * 70),
}
BOUNDS = Bounds(namespaces=frozenset({NAMESPACE}), classes=CLASSES)
EXPRESSIONS = (
    "true",
    'device.driver == "gpu.portico.dev"',
    (
        'has(device.attributes["gpu.portico.dev"].productName) &&\n'
        'device.attributes["gpu.portico.dev"].productName.matches("^NVIDIA H[12]00")'
    ),
    'device.capacity[?"gpu.portico.dev"].?memory.hasValue()',
)
# What is pasted where the workload is one's own.
OWN = "apiVersion: v1\nkind: Pod\nmetadata: {name: own}\nspec: {containers: [{name: main, image: x}]}\n"
# Where objects of the files' kinds are made, by namespace.
COLLECTIONS = {
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "Service": "/api/v1/namespaces/{}/services",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
}
NAMES = ("trainer", "y", "1e3", "0x1f", "null", "a" * 63, "no-1", "reranker-2")


def wishes(size: int = SIZE) -> tuple[Wish, ...]:
    """The corpus; its first 100 are the same whatever the size."""
    return tuple(_wish(Random(number)) for number in range(size))


def _wish(random: Random) -> Wish:
    extended = random.random() < 0.15
    workload = random.choice(list(Workload))
    fields: dict[str, Any] = {
        "namespace": NAMESPACE,
        "name": random.choice(NAMES),
        "workload": workload,
        "preset": random.choice([None, None, None, *Preset]),
        "hours": random.choice([None, 1, 48]),
        "priority": random.choice(["", "", "system-cluster-critical"]) if workload is not Workload.OWN else "",
    }
    if workload is Workload.OWN:
        fields["manifest"] = sha256(OWN.encode()).hexdigest()
    if workload in {Workload.DEPLOYMENT, Workload.JOB, Workload.STATEFUL_SET}:
        fields["replicas"] = random.randint(1, 5)
    if workload is Workload.DEPLOYMENT and random.random() < 0.4:
        fields |= {"replicas": 1, "autoscale": (random.randint(1, 2), random.randint(2, 9))}
    return _by_extended_resource(random, fields) if extended else _by_claims(random, fields)


def _by_extended_resource(random: Random, fields: dict[str, Any]) -> Wish:
    name = random.choice([name for name in CLASSES if len(name) <= 63])
    return Wish(**fields, device_class=name, count=random.randint(1, 8), style=Style.EXTENDED)


def _by_claims(random: Random, fields: dict[str, Any]) -> Wish:
    first = _choice(random)
    facts = CLASSES[first["device_class"]]
    takes_config = facts.driver and facts.configurable
    if takes_config and "slots" in first:
        fields["interval"] = random.choice([None, *Interval])
    elif takes_config:
        fields["strategy"] = random.choice([None, *Strategy])
    if random.random() < 0.4:
        fields["alternatives"] = tuple(Choice(**_choice(random)) for _ in range(random.randint(1, 7)))
    return Wish(
        **fields,
        **first,
        owner=random.choice(list(Owner)),
        cel=tuple(random.sample(EXPRESSIONS, random.choice([0, 0, 1, 2]))),
        constraints=tuple(_constraint(random) for _ in range(random.choice([0, 0, 1, 2]))),
        tolerations=tuple(_toleration(random) for _ in range(random.choice([0, 0, 1, 2]))),
    )


def _choice(random: Random) -> dict[str, Any]:
    sizes: list[dict[str, Any]] = [
        {"count": random.randint(1, 4)},
        {"share": random.randint(1, 19) * 5},
        {"profile": random.choice(["1g.10gb", "1g.10gb+me", "7g.141gb"]), "count": random.randint(1, 2)},
        {"slots": random.randint(1, 4)},
    ]
    memory = random.choice([None, Quantity.of(random.randint(1, 64) * 2**29, Format.BINARY_SI)])
    return {"device_class": random.choice(list(CLASSES)), "memory": memory, **random.choice(sizes)}


def _constraint(random: Random) -> Constraint:
    attribute = random.choice(["resource.kubernetes.io/pcieRoot", "gpu.portico.dev/numa"])
    return Constraint(random.choice(list(ConstraintKind)), attribute)


def _toleration(random: Random) -> Toleration:
    return random.choice(
        [
            Toleration(),
            Toleration(key="gpu.portico.dev/unhealthy", effect="NoExecute", seconds=300),
            Toleration(key="gpu.portico.dev/unhealthy", operator="Equal", value="true", effect="NoSchedule"),
        ]
    )
