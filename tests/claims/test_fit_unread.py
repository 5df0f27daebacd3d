"""A pool that is not read in full: the scheduler passes over it, so it leaves a doubt only where nothing else would."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from tests.claims.rows import device_class, put
from tests.claims.test_fit import hold, panel, words
from tests.gpuinventory.fleet import node_object, slices_of

pytestmark = pytest.mark.usefixtures("fleet")
TORN = "pool gpu.portico.dev/node-2 is not read in full: 1 of 2 slices of generation 1 seen"


def put_torn(driver: str = "gpu.portico.dev", *, cordoned: bool = False) -> None:
    """A second node, half of whose pool is there; nothing says what the other half holds."""
    body = slices_of("node-2", cards=1)[0].replace(b"gpu.portico.dev", driver.encode())
    put("Node", node_object("node-2", unschedulable=cordoned))
    put("ResourceSlice", body)


def test_a_wish_that_nothing_else_could_hold_is_not_sure_and_names_the_pool(as_alice: Client) -> None:
    put_torn()
    said = words(panel(as_alice, "&count=3"))
    assert f"Not sure: {TORN}. Nothing else would fit, even with nothing in use." in said
    assert "Numbers may be low" not in said


def test_a_wish_that_fits_once_devices_are_free_will_wait_whatever_the_pool_holds(as_alice: Client) -> None:
    hold(0, 1)
    put_torn()
    said = words(panel(as_alice))
    assert "Will wait: 0 of 2 matching devices are free" in said
    assert f"Numbers may be low: {TORN}." in said


def test_a_pool_on_a_node_that_takes_no_such_pod_leaves_no_doubt(as_alice: Client) -> None:
    put_torn(cordoned=True)
    said = words(panel(as_alice, "&count=3"))
    assert "Cannot fit, even with nothing in use: no node has 3 of these." in said
    assert f"Numbers may be low: {TORN}." in said


def test_a_pool_of_another_driver_leaves_no_doubt(as_alice: Client) -> None:
    put_torn("gpu.example.com")
    assert "Cannot fit, even with nothing in use" in words(panel(as_alice, "&count=3"))


def test_a_pool_of_an_alternative_s_driver_does(as_alice: Client) -> None:
    put_torn("gpu.example.com")
    put("DeviceClass", device_class("example", 'device.driver == "gpu.example.com"'))
    said = words(panel(as_alice, "&count=3&alt.1.class=example&alt.1.count=1"))
    assert "Not sure: pool gpu.example.com/node-2 is not read in full" in said


def test_a_pool_that_contradicts_itself_leaves_no_doubt(as_alice: Client) -> None:
    """All of it is there: the scheduler takes nothing from it however long one waits."""
    counters, devices = (json.loads(body) for body in slices_of("node-2", cards=1))
    if "devices" not in devices["spec"]:
        counters, devices = devices, counters
    devices["spec"]["devices"][1]["name"] = devices["spec"]["devices"][0]["name"]
    put("Node", node_object("node-2"))
    put("ResourceSlice", *(json.dumps(each).encode() for each in (counters, devices)))
    said = words(panel(as_alice, "&count=3"))
    assert "Cannot fit, even with nothing in use" in said
    assert "Numbers may be low: pool gpu.portico.dev/node-2 can't be used: duplicate device name" in said
