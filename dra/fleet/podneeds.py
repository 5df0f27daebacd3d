"""A pod to what it asks of its node. Pure."""

from __future__ import annotations

from collections.abc import Collection

from dra.fleet.podrequests import pod_requests
from dra.fleet.wish import PodNeeds, Toleration
from dra.objects import Pod


def pod_needs(pod: Pod, served: Collection[str] = ()) -> PodNeeds:
    """What the scheduler's filters of nodes look at; InvalidQuantityError where an amount can't be read.

    `served` are extended resources that device classes answer for: the pod's claims ask for those (KEP-5004).
    """
    spec = pod.spec
    wanted = spec.affinity.node_affinity if spec.affinity else None
    return PodNeeds(
        node_selector=spec.node_selector,
        affinity=wanted.required_during_scheduling_ignored_during_execution if wanted else None,
        tolerations=tuple(
            Toleration(key=each.key, operator=each.operator, value=each.value, effect=each.effect)
            for each in spec.tolerations
        ),
        requests={name: str(amount) for name, amount in pod_requests(pod).items() if name not in served},
    )
