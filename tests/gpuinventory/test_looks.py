"""Home and the device pages in a real browser: both widths and themes, full, empty, failing; live without reloads."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from gpuinventory.capabilities import Capabilities, Gate
from gpuinventory.kinds import KINDS
from gpuinventory.services import lease
from gpuinventory.services.ingest import ingest
from gpuinventory.services.lag import Measured
from portal.models import User
from tests.browser import Looks
from tests.claims.rows import put_gpu_class
from tests.gpuinventory.fleet import DRIVER, claim, device, keep, node_object, put_classes, seen, slices_of
from tests.portal_fixtures import PASSWORD, signed_in

pytestmark = pytest.mark.django_db(transaction=True)
CARD = f"/devices/{DRIVER}/node-a/gpu-0/"
type Open = Callable[[User], Page]


@pytest.fixture
def fleet(transactional_db: None) -> None:
    """Three nodes, shares of two teams on one card, a MIG part, a tainted card, a pool that is being updated."""
    ingest("Node", seen([node_object("node-a"), node_object("node-b", unschedulable=True), node_object("node-c")]))
    ingest("ResourceSlice", seen([*slices_of("node-a", cards=4, unclean=[2]), *slices_of("node-b", cards=4)]))
    ingest("ResourceSlice", seen(slices_of("node-c", cards=4)[:-1]))
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "finetune-0", "uid": "u"}]
    claims = [
        claim("ml-team", "notebook-gpu", [device("node-a", "gpu-0", percent=25)], pods=["notebook"]),
        claim("inference-team", "embedder-gpu", [device("node-a", "gpu-0", percent=50)], pods=["embedder-0"]),
        claim("inference-team", "part", [device("node-b", "gpu-1-mig-3g40gb-0", percent=100)], pods=["part-0"]),
        claim("ml-team", "on-a-bad-card", [device("node-a", "gpu-2", percent=100)], pods=["sweep-17"]),
        claim("ml-team", "finetune-gpu", ownerReferences=owner),
        claim("ml-team", "by-hand"),
    ]
    ingest("ResourceClaim", seen(claims))


def in_step() -> None:
    for kind in KINDS:
        lease.take(kind, "test", timezone.now())
        lease.keep(kind, "test", timezone.now())


@pytest.fixture
def faults() -> list[str]:
    """What the browser's console says is wrong; the policy's refusals are among it."""
    return []


@pytest.fixture
def open_as(browser: Browser, live_server: LiveServer, faults: list[str]) -> Iterator[Open]:
    """A page of a browser in which that person is signed in."""
    context = browser.new_context(base_url=live_server.url)

    def open_page(user: User) -> Page:
        cookie = signed_in(user).cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        return page

    yield open_page
    context.close()
    assert faults == []


@pytest.mark.usefixtures("fleet")
def test_full(open_as: Open, alice: User, olga: User, looks: Looks) -> None:
    in_step()
    page = open_as(alice)
    page.goto("/")
    looks.at(page, "home-full")
    page.goto(CARD)
    looks.at(page, "device-of-a-team")
    page = open_as(olga)
    page.goto("/devices/")
    looks.at(page, "devices-full")
    page.goto(f"/devices/{DRIVER}/node-b/gpu-1-mig-3g40gb-0/")
    looks.at(page, "device-mig")


def test_empty(open_as: Open, alice: User, gus: User, looks: Looks) -> None:
    in_step()
    page = open_as(alice)
    page.goto("/devices/")
    looks.at(page, "devices-empty")
    page = open_as(gus)
    page.goto("/")
    looks.at(page, "home-guest")


@pytest.mark.usefixtures("fleet")
def test_failing(open_as: Open, olga: User, looks: Looks) -> None:
    in_step()
    for kind in KINDS:
        lease.keep(kind, "test", timezone.now() - timedelta(minutes=7))
        lease.fail(kind, "test", timezone.now(), "no answer from https://10.0.0.1:6443: connection refused")
    page = open_as(olga)
    page.goto("/devices/")
    expect(page.get_by_text("No word from the cluster since")).to_be_visible()
    looks.at(page, "devices-failing")


@pytest.mark.usefixtures("fleet")
def test_capacity(open_as: Open, alice: User, olga: User, looks: Looks) -> None:
    put_classes()
    put_gpu_class("whole", title="H100, whole", order=1)
    put_gpu_class("quarter", title="A quarter of an H100", mode="share", share={"default": 25, "min": 25, "max": 50})
    put_gpu_class("old", title="A100", state="paused", message="Moved to the other hall until Monday.")
    in_step()
    lease.set_absent("PhysicalGPU", "test", timezone.now())
    page = open_as(alice)
    page.goto("/capacity/")
    looks.at(page, "capacity-full")
    for kind in KINDS:
        lease.keep(kind, "test", timezone.now() - timedelta(minutes=7))
    page.reload()
    expect(page.get_by_text("No word from the cluster since").first).to_be_visible()
    looks.at(page, "capacity-stale")
    for kind in KINDS:
        lease.fail(kind, "test", timezone.now(), "no answer from https://10.0.0.1:6443: connection refused")
    page = open_as(olga)
    page.goto("/capacity/")
    expect(page.get_by_text("connection refused").first).to_be_visible()
    looks.at(page, "capacity-failing")


def gates() -> tuple[Gate, ...]:
    return (
        Gate(name="DRAPartitionableDevices", state="on", evidence="it keeps spec.sharedCounters"),
        Gate(name="DRAConsumableCapacity", state="off", evidence="it drops spec.devices[0].allowMultipleAllocations"),
        Gate(name="DRAAdminAccess", state="unknown", evidence='User "w" cannot create resource "resourceslices"'),
    )


def test_sync(open_as: Open, alice: User, olga: User, looks: Looks) -> None:
    now = timezone.now()
    measured = Measured(changed_at=now, lag=130.0, clock_ahead=600.5)
    for kind in KINDS:
        lease.take(kind, "test", now)
        lease.keep(kind, "test", now, "1", measured if kind == "ResourceSlice" else None)
    lease.set_absent("PhysicalGPU", "test", now)
    seen = Capabilities(version="v1.36.4", minor=36, served={"v1": ("resourceslices",)}, gates=gates(), checked_at=now)
    keep(seen)
    page = open_as(alice)
    page.goto("/")
    page.locator("#freshness").click()
    expect(page).to_have_url(re.compile("/sync/$"))
    expect(page.get_by_text("The cluster's clock is 10 min ahead of the worker's.")).to_be_visible()
    looks.at(page, "sync-full")
    lease.keep("ResourceSlice", "test", now, "1", Measured(changed_at=now, lag=7.0, clock_ahead=0.0))
    expect(page.get_by_text("7 s", exact=False).first).to_be_visible(timeout=8000)
    expect(page.get_by_text("it drops spec.devices[0].allowMultipleAllocations")).to_be_visible()
    lease.fail("Pod", "test", now, "pods is forbidden")
    keep(dataclasses.replace(seen, version="v1.30.0", minor=30, served={}))
    page = open_as(olga)
    page.goto("/sync/")
    looks.at(page, "sync-failing")


def test_sync_of_a_fresh_portal(open_as: Open, alice: User, looks: Looks) -> None:
    page = open_as(alice)
    page.goto("/sync/")
    looks.at(page, "sync-empty")


def test_capacity_empty(open_as: Open, alice: User, looks: Looks) -> None:
    page = open_as(alice)
    page.goto("/capacity/")
    looks.at(page, "capacity-empty")


def test_refusals(open_as: Open, alice: User, looks: Looks, faults: list[str]) -> None:
    page = open_as(alice)
    page.goto("/nowhere/")
    looks.at(page, "not-found")
    assert len(faults) == 1  # the browser's own note about the 404
    faults.clear()


@pytest.mark.usefixtures("alice", "gus")
def test_people(open_as: Open, olga: User, looks: Looks, faults: list[str]) -> None:
    in_step()
    page = open_as(olga)
    page.goto("/people/")
    looks.at(page, "people")
    page.get_by_label("User name").fill("system:admin")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_be_focused()
    looks.at(page, "people-refused")
    assert len(faults) == 1  # the browser's own note about the 422
    faults.clear()


@pytest.mark.usefixtures("alice")
def test_signing_in(browser: Browser, live_server: LiveServer, looks: Looks) -> None:
    context = browser.new_context(base_url=live_server.url)
    page = context.new_page()
    page.goto("/devices/")
    looks.at(page, "sign-in")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    looks.at(page, "sign-in-refused")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Devices")).to_be_visible()
    context.close()


@pytest.mark.usefixtures("fleet")
def test_rows_change_without_a_reload_and_filters_narrow_them(open_as: Open, olga: User) -> None:
    in_step()
    page = open_as(olga)
    page.goto("/devices/")
    page.evaluate("window.stayed = true")
    expect(page.get_by_role("row", name="gpu-1 node-a")).to_contain_text("Free")
    held = claim("ml-team", "late", [device("node-a", "gpu-1", percent=100)], pods=["late-0"])
    ingest("ResourceClaim", seen([held]))
    expect(page.get_by_role("row", name="gpu-1 node-a")).to_contain_text("Held", timeout=8000)
    page.get_by_label("State").select_option("blocked")
    expect(page.get_by_role("row", name="gpu-2 node-a")).to_be_visible()
    expect(page.get_by_role("row", name="gpu-1 node-a")).to_have_count(0)
    expect(page).to_have_url(f"{page.url.split('?')[0]}?text=&state=blocked&product=&node=")
    assert page.evaluate("window.stayed") is True


@pytest.mark.usefixtures("fleet")
def test_everything_works_without_javascript(browser: Browser, live_server: LiveServer, olga: User) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/devices/")
    page.get_by_label("User name").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("State").select_option("blocked")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="gpu-2").click()
    expect(page.get_by_text("No new claim gets this device")).to_be_visible()
    page.get_by_text("olga").first.click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    context.close()


@pytest.mark.usefixtures("fleet")
def test_the_colours_stay_as_chosen(open_as: Open, alice: User) -> None:
    page = open_as(alice)
    page.goto("/")
    page.get_by_role("button", name="Colours").click()
    page.get_by_role("button", name="Colours").click()
    page.goto("/devices/")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
