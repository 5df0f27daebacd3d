"""What the corpus against the real scheduler found wrong in the panel, each as the smallest page that shows it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

import pytest
from django.test import Client

from claims.services.fit.stop import stop_of
from claims.views.fitstops import stop_words
from claims.views.fitwords import NOTHING_ASKED
from dra.allocation import Failed
from dra.names import DeviceID
from dra.objects import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
)
from gpuinventory.selectors import held
from tests.claims.rows import device_class, put
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
    said = words(panel(as_alice, f"&cel.1={condition}"))
    kind = "NVIDIA H100 80GB HBM3, Physical, 79.6 GiB, such as gpu-0 of node-2"
    assert f"Cannot fit, even with nothing in use: your condition 1 fails on {kind}: “" in said
    assert "no such key: nothing. Guard the key with has()." in said
    assert "Once the free devices before them are taken" not in said  # that is what the sentence says
    assert "inference-team" not in said


def test_an_alternative_that_fails_is_named(as_alice: Client) -> None:
    condition = quote_plus('has(device.attributes["gpu.portico.dev"].migProfile) ? 1 / 0 == 1 : true')
    hold(0, 1)
    said = words(panel(as_alice, f"&cel.1={condition}&alt.1.class=anything&alt.1.count=1"))
    assert "nowhere: your condition 1, for alternative 1 (anything), fails on NVIDIA H100 80GB HBM3, 1g." in said


def stopped(**facts: Any) -> str:
    """What is said of a fatal error of the scheduler, for a claim of the class `red`."""
    exactly = ExactDeviceRequest(device_class_name="red")
    devices = DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=exactly),))
    asked = ResourceClaim(metadata=ObjectMeta(name="x"), spec=ResourceClaimSpec(devices=devices))
    failed = Failed(kind="fatal", message="the scheduler's words", device_request="gpu", **facts)
    return stop_words(stop_of(failed, asked, held.current().snapshot), NOTHING_ASKED)


def test_the_selector_of_a_class_is_named_with_the_class_and_the_kind_of_device() -> None:
    """The form refuses such a class where it has seen all devices; one that reads identifiers may have too many."""
    own = 'device.attributes["gpu.portico.dev"]'
    selectors = [{"cel": {"expression": each}} for each in (f"has({own}.uuid)", f'{own}.colour == "red"')]
    put("DeviceClass", device_class("red", selectors=selectors))
    device_id = DeviceID("gpu.portico.dev", "node-1", "gpu-1")
    assert stopped(code="selector", device_class="red", selector=1, device=device_id) == (
        "selector 2 of the class red fails on NVIDIA H100 80GB HBM3, Physical, 79.6 GiB, such as gpu-1 of node-1: "
        f'“{own}.colour == "red"”, no such key: colour. Guard the key with has().'
    )


def test_of_an_error_that_is_no_selector_s_only_the_scheduler_s_words_are_known() -> None:
    assert stopped(code="capacity", device=DeviceID("gpu.portico.dev", "node-1", "gpu-1")) == ""
    assert stopped(code="selector", device_class="red", selector=0) == ""  # a selector that does not compile
