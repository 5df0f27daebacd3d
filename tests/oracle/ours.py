"""Our engine asked the oracle's questions; its answers in the oracle's form.

An exception that is no DraError becomes an answer of the kind "crash", so that it is found as a disagreement.
"""

from __future__ import annotations

import msgspec

from dra.allocation import Allocated, Failed, Snapshot, allocate
from dra.cel import CelCompileError, CelDevice, CelRuntimeError, Program, compile_expression
from dra.features import Features
from dra.objects import Device, DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice
from tests.oracle.asking import Json


def answer(question: Json) -> Json:
    """The answer to a question of either kind. msgspec.ValidationError where objects are not readable."""
    return selection(question) if question["kind"] == "cel" else allocation(question)


def allocation(question: Json) -> Json:
    """One node; `warnings` is added where the engine gives any."""
    snapshot, claims = read(question)
    try:
        said = allocate(snapshot, question["node"]["metadata"]["name"], claims)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is the finding)
        return {"error": repr(error), "errorKind": "crash"}
    warnings = {"warnings": len(said.warnings)} if said.warnings else {}
    if isinstance(said, Allocated):
        return {"allocations": msgspec.json.decode(msgspec.json.encode(said.results))} | warnings
    if isinstance(said, Failed):
        return {"error": said.message, "errorKind": said.kind} | warnings
    return {"allocations": None} | warnings


def read(question: Json) -> tuple[Snapshot, tuple[ResourceClaim, ...]]:
    """The objects of an allocation question."""
    snapshot = Snapshot.build(
        nodes=msgspec.convert([question["node"]], tuple[Node, ...]),
        slices=msgspec.convert(question.get("slices", ()), tuple[ResourceSlice, ...]),
        classes=msgspec.convert(question.get("classes", ()), tuple[DeviceClass, ...]),
        resource_claims=msgspec.convert(question.get("allocatedClaims", ()), tuple[ResourceClaim, ...]),
        taint_rules=msgspec.convert(question.get("taintRules", ()), tuple[DeviceTaintRule, ...]),
        features=Features().with_gates(question.get("features", {})),
    )
    return snapshot, msgspec.convert(question["claims"], tuple[ResourceClaim, ...])


def selection(question: Json) -> Json:
    """Each expression about each device."""
    devices = [_device(question["driver"], device) for device in msgspec.convert(question["devices"], list[Device])]
    return {"results": [_result(question, text, devices) for text in question["expressions"]]}


def _device(driver: str, device: Device) -> CelDevice:
    return CelDevice.of(
        driver, device.attributes, device.capacity, allow_multiple=bool(device.allow_multiple_allocations)
    )


def _result(question: Json, text: str, devices: list[CelDevice]) -> Json:
    try:
        program = compile_expression(text, environment=question.get("environment", "stored"))
    except CelCompileError as error:
        return {"compileError": str(error)}
    except Exception as error:  # noqa: BLE001 (as above)
        return {"crash": repr(error)}
    if not question.get("costs"):
        return {"values": [_value(program, device) for device in devices]}
    metered = [program.cost(device) for device in devices]
    return {
        "values": [{"error": str(value)} if isinstance(value, CelRuntimeError) else value for value, _ in metered],
        "costs": [cost for _, cost in metered],
        "maxCost": program.max_cost,
    }


def _value(program: Program, device: CelDevice) -> bool | Json:
    try:
        return program.matches(device)
    except CelRuntimeError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001 (as above)
        return {"crash": repr(error)}
