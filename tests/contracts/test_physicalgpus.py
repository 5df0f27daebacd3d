"""Our own kind PhysicalGPU, served from the chart's CRD: what a real server said of each object is said here too."""

from typing import Any

import pytest

from tests.cluster.physicalgpus import PATH, physical_gpu
from tests.cluster.test_physicalgpu_crd import APPLY, REFUSED, STATUS, TAKEN, TRY
from tests.contracts.conftest import SimulatorDoor

MEDIA = {"Content-Type": APPLY}
QUERY = "?fieldManager=test&force=true&fieldValidation=Strict"


@pytest.mark.parametrize("document", TAKEN.values(), ids=TAKEN)
def test_what_the_crd_takes_is_taken(simulator_door: SimulatorDoor, document: dict[str, Any]) -> None:
    reply = simulator_door.send("POST", TRY, document)
    assert reply.code == 201, reply.body


@pytest.mark.parametrize(("document", "words"), REFUSED.values(), ids=REFUSED)
def test_what_the_crd_refuses_is_refused(simulator_door: SimulatorDoor, document: dict[str, Any], words: str) -> None:
    reply = simulator_door.send("POST", TRY, document)
    assert reply.code in (400, 422), reply.body
    assert words in reply.body["message"]


def test_a_card_is_applied_and_its_status_beside_it(simulator_door: SimulatorDoor) -> None:
    card = physical_gpu()
    path = f"{PATH}/{card['metadata']['name']}"
    assert simulator_door.send("PATCH", path + QUERY, card, MEDIA).code == 201
    reply = simulator_door.send("PATCH", f"{path}/status{QUERY}", card | {"status": STATUS}, MEDIA)
    assert (reply.code, reply.body["status"]) == (200, STATUS)


def test_cards_are_listed_by_their_node(simulator_door: SimulatorDoor) -> None:
    for node in ("node-1", "node-2"):
        assert simulator_door.send("POST", PATH, physical_gpu(node)).code == 201
    found = simulator_door.send("GET", f"{PATH}?fieldSelector=spec.nodeName%3Dnode-2").body["items"]
    assert [item["spec"]["nodeName"] for item in found] == ["node-2"]
