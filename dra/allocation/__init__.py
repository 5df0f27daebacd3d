"""Allocation: which devices kube-scheduler would give to ResourceClaims on a node, without its effort. Pure.

`Snapshot` holds a fleet, `Snapshot.node` what one node sees, `allocate` answers for one node. Layers inside: shapes and
use, then visible, view, snapshot; request and result; then search.
"""

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
    "compile_slice",
    "is_identifier",
]
