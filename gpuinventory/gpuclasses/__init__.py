"""GPU classes as people see them: those that administrators made, and derived ones for DeviceClasses without. Pure.

Everything follows from a snapshot of the fleet and the GPUClass objects; nothing here reads rows or the cluster.
"""

from gpuinventory.gpuclasses.derive import derive, expressions_of, tells_devices_apart
from gpuinventory.gpuclasses.fleetshapes import FleetShape, shapes_of
from gpuinventory.gpuclasses.lint import Check, Finding, FindingCode, check
from gpuinventory.gpuclasses.numbers import Numbers, numbers_of, open_nodes
from gpuinventory.gpuclasses.offer import Offer, Part, Portion, offer_of
from gpuinventory.gpuclasses.published import AttributeSeen, TaintSeen, attributes_of, taints_of
from gpuinventory.gpuclasses.traits import Traits, keys_of, traits_of
from gpuinventory.gpuclasses.view import GPUClassView, Made

__all__ = [
    "AttributeSeen",
    "Check",
    "Finding",
    "FindingCode",
    "FleetShape",
    "GPUClassView",
    "Made",
    "Numbers",
    "Offer",
    "Part",
    "Portion",
    "TaintSeen",
    "Traits",
    "attributes_of",
    "check",
    "derive",
    "expressions_of",
    "keys_of",
    "numbers_of",
    "offer_of",
    "open_nodes",
    "shapes_of",
    "taints_of",
    "tells_devices_apart",
    "traits_of",
]
