"""Routes of the device pages: who gets what."""

from __future__ import annotations

from typing import Any

from gpuinventory.services.ingest import ingest
from tests.gpuinventory.fleet import DRIVER, claim, device, seen, slices_of
from tests.portal.routetable import Row


def a_card_of_ml_team() -> dict[str, Any]:
    """A share of a card, held by Alice's team alone."""
    ingest("ResourceSlice", seen(slices_of("node-a")))
    ingest("ResourceClaim", seen([claim("ml-team", "c", [device("node-a", "gpu-0", percent=25)], pods=["p"])]))
    return {"driver": DRIVER, "pool": "node-a", "name": "gpu-0"}


ROWS = (
    Row(route="gpuinventory:home", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=302),
    Row(route="gpuinventory:freshness", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=302),
    Row(route="gpuinventory:sync", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=302),
    Row(route="gpuinventory:capacity", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=302),
    Row(route="gpuinventory:devices", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=302),
    # What others hold is not there for those who hold nothing of it.
    Row(
        route="gpuinventory:device",
        arrange=a_card_of_ml_team,
        alice=200,
        bob=200,
        charlie=404,
        operator=200,
        guest=404,
        anonymous=302,
    ),
)
