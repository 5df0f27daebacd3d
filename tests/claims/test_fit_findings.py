"""What the corpus against the real scheduler found wrong in the panel, each as the smallest page that shows it."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest
from django.test import Client

from tests.claims.rows import put
from tests.claims.test_fit import hold, panel, words
from tests.gpuinventory.fleet import claim, device, node_object, slices_of

pytestmark = pytest.mark.usefixtures("fleet")


def test_a_condition_that_fails_on_a_device_in_use_is_not_said_to_wait(as_alice: Client) -> None:
    """The search skips devices in use before their selectors: once the card is free it ends in an error."""
    own = 'device.attributes["gpu.portico.dev"]'
    condition = quote_plus(f'{own}.brand == "Odd" ? {own}.nothing == "x" : true')
    odd = [body.replace(b'"Nvidia"', b'"Odd"') for body in slices_of("node-2")]
    put("Node", node_object("node-2"))
    put("ResourceSlice", *odd)
    hold(0, 1)
    put("ResourceClaim", claim("inference-team", "odd", [device("node-2", "gpu-0")], pods=["p"]))
    assert "Cannot fit, even with nothing in use" in words(panel(as_alice, f"&cel.1={condition}"))
