"""Questions to a whole fleet: on how many nodes a wish fits, how often in all, and which node is best. Pure.

`fits` asks once; a `Fleet` follows snapshots and is quick from the second question on. Layers inside: wish, podrules,
podrequests, then podneeds, answer, then question, grants, nodeanswers, nodegroups, podrooms, then largest, joint,
summary, then fleet.
"""

from dra.fleet.answer import Abort, FleetAnswer, Instances, LargestCount, NodeGroup, PodObstacle
from dra.fleet.fleet import Fleet, fits
from dra.fleet.podneeds import pod_needs
from dra.fleet.podrequests import pod_requests, takes_room
from dra.fleet.podrules import PodFault, PodRoom, PodRule, pod_room
from dra.fleet.wish import NO_USAGE, PodNeeds, Toleration, Usage, Wish

__all__ = [
    "NO_USAGE",
    "Abort",
    "Fleet",
    "FleetAnswer",
    "Instances",
    "LargestCount",
    "NodeGroup",
    "PodFault",
    "PodNeeds",
    "PodObstacle",
    "PodRoom",
    "PodRule",
    "Toleration",
    "Usage",
    "Wish",
    "fits",
    "pod_needs",
    "pod_requests",
    "pod_room",
    "takes_room",
]
