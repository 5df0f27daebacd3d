"""Allocation: which devices kube-scheduler would give to ResourceClaims on a node, without its effort. Pure.

`Snapshot` holds a fleet, `Snapshot.node` what one node sees, `allocate` answers for one node. Inside, from the ground
up: shapes and use; visible, view and snapshot; result, request and verdict; state and groups; parts and outlook, by
which the search leaves out what cannot help; search and outcome; allocate. `check` judges results without any of them.
"""

from dra.allocation.allocate import allocate, allocate_on
from dra.allocation.result import Allocated, Answer, Failed, Refused, SchedulerTimesOut
from dra.allocation.shapes import IDENTIFIERS, PublishedSlice, Shape, SliceLayout, compile_slice, is_identifier
from dra.allocation.snapshot import Snapshot, UnknownNodeError
from dra.allocation.view import DeviceView, NodeKey, NodeView, PoolView

__all__ = [
    "IDENTIFIERS",
    "Allocated",
    "Answer",
    "DeviceView",
    "Failed",
    "NodeKey",
    "NodeView",
    "PoolView",
    "PublishedSlice",
    "Refused",
    "SchedulerTimesOut",
    "Shape",
    "SliceLayout",
    "Snapshot",
    "UnknownNodeError",
    "allocate",
    "allocate_on",
    "compile_slice",
    "is_identifier",
]
