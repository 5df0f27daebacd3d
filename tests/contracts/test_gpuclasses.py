"""Our own kind GPUClass, served from the chart's CRD: what a real server said of each object is said here too."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import simulator_schema
from simulator.api.rules import RULES
from tests.cluster.gpuclasses import gpu_class as for_crd
from tests.cluster.test_gpuclass_crd import REFUSED, TAKEN, TRY
from tests.contracts.conftest import SimulatorDoor

PATH = "/apis/portico.dev/v1alpha1/gpuclasses"
MERGE = {"Content-Type": "application/merge-patch+json"}


def gpu_class(**spec: Any) -> dict[str, Any]:
    base = {"title": "Small", "deviceClass": {"name": "gpu.example.com"}}
    return {
        "apiVersion": "portico.dev/v1alpha1", "kind": "GPUClass", "metadata": {"name": "small"}, "spec": base | spec,
    }  # fmt: skip


def test_a_class_is_stored_strictly(simulator_door: SimulatorDoor) -> None:
    reply = simulator_door.send("POST", f"{PATH}?fieldValidation=Strict", gpu_class())
    assert (reply.code, reply.body["metadata"]["generation"]) == (201, 1), reply.body
    unknown = simulator_door.send("POST", f"{PATH}?fieldValidation=Strict", gpu_class(lost=1))
    assert (unknown.code, 'unknown field "spec.lost"' in unknown.body["message"]) == (400, True)


def test_what_the_crd_requires_and_lists_is_held(simulator_door: SimulatorDoor) -> None:
    body = gpu_class(mode="nothing")
    del body["spec"]["title"]
    reply = simulator_door.send("POST", PATH, body)
    assert reply.code == 422
    assert {cause["field"] for cause in reply.body["details"]["causes"]} == {"spec.title", "spec.mode"}


@pytest.mark.parametrize("spec", TAKEN.values(), ids=TAKEN)
def test_what_the_crd_takes_is_taken(simulator_door: SimulatorDoor, spec: dict[str, Any]) -> None:
    reply = simulator_door.send("POST", TRY, for_crd(**spec))
    assert reply.code == 201, reply.body


@pytest.mark.parametrize(("spec", "words"), REFUSED.values(), ids=REFUSED)
def test_what_the_crd_refuses_is_refused(simulator_door: SimulatorDoor, spec: dict[str, Any], words: str) -> None:
    reply = simulator_door.send("POST", TRY, for_crd(**spec))
    assert reply.code in (400, 422), reply.body
    assert words in reply.body["message"]


def test_custom_resources_know_no_strategic_patch(simulator_door: SimulatorDoor) -> None:
    simulator_door.send("POST", PATH, gpu_class())
    media = {"Content-Type": "application/strategic-merge-patch+json"}
    assert simulator_door.send("PATCH", f"{PATH}/small", {"spec": {"title": "Big"}}, media).code == 415
    assert simulator_door.send("PATCH", f"{PATH}/small", {"spec": {"title": "Big"}}, MERGE).code == 200


def test_the_data_file_follows_the_charts_crds() -> None:
    written = json.loads(Path(simulator_schema.TARGET).read_text())
    types: dict[str, Any] = {}
    kinds = simulator_schema.crd_kinds(types)
    assert kinds.items() <= written["kinds"].items()
    assert types == {name: written["types"][name] for name in types}, "run scripts/simulator_schema.py"
    fields = [field for each in types.values() for field in each["fields"].values()]
    assert {rule["rule"] for each in (*types.values(), *fields) for rule in each.get("rules", ())} == RULES.keys()
