"""Which wishes have to be asked of every node: one row a reason, and those that need not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dra.fleet.question import question
from dra.objects import DeviceConstraint, ResourceClaim
from tests.dra.fleet.fleets import claim, device_class

ATTRIBUTES = 'device.attributes["gpu.example.com"]'


def constrained(**constraint: str) -> ResourceClaim:
    wish = claim(count=2)
    devices = msgspec.structs.replace(wish.spec.devices, constraints=(msgspec.convert(constraint, DeviceConstraint),))
    return msgspec.structs.replace(wish, spec=msgspec.structs.replace(wish.spec, devices=devices))


def derived() -> dict[str, Any]:
    return {"derivedAttributes": [{"name": "gpu.example.com/root", "expression": f"{ATTRIBUTES}.uuid"}]}


ROWS = [
    ("no selector", claim(), False),
    ("a selector by model", claim("wish", f'{ATTRIBUTES}.model == "A"'), False),
    ("a selector by UUID", claim("wish", f'{ATTRIBUTES}.uuid == "GPU-1"'), True),
    ("a selector by an optional UUID", claim("wish", f'{ATTRIBUTES}.?uuid.orValue("") == "GPU-1"'), True),
    ("a selector by a name that is not known", claim("wish", f'{ATTRIBUTES}.exists(key, key == "model")'), True),
    ("a selector that does not compile", claim("wish", "device."), False),
    ("cards on one PCIe root", constrained(matchAttribute="resource.kubernetes.io/pcieRoot"), False),
    ("parts of one card", constrained(matchAttribute="gpu.example.com/parentUUID"), True),
    ("parts of different cards", constrained(distinctAttribute="gpu.example.com/parentUUID"), True),
    ("a derived attribute", claim(**derived()), True),
]


@pytest.mark.parametrize(("wish", "reads"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_reads_identity(wish: ResourceClaim, reads: bool) -> None:  # noqa: FBT001 - a column of the table
    assert question((wish,), {"gpu": device_class()}).reads_identity is reads


def test_the_class_is_part_of_the_question() -> None:
    by_uuid = device_class(f'{ATTRIBUTES}.uuid != ""')
    assert question((claim(),), {"gpu": by_uuid}).reads_identity
    assert question((claim(),), {"gpu": by_uuid}).key != question((claim(),), {"gpu": device_class()}).key
    assert question((claim(),), {"gpu": device_class()}).key == question((claim(),), {"gpu": device_class()}).key
