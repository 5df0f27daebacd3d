"""The folded parts of the form in a real browser: pictures, the keyboard, focus and caret while previews come."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.models import User
from tests.browser import Looks
from tests.claims.rows import CEL, KEY, QUERY, device_class, put, quota
from tests.claims.test_desk_advanced import PRODUCT, priority_class, tainted
from tests.gpuinventory.fleet import claim, device
from tests.portal_fixtures import signed_in

pytestmark = [pytest.mark.usefixtures("fleet"), pytest.mark.django_db(transaction=True)]
ADDRESS = f"/request/?{QUERY}&form={KEY}"
MIG = CEL.replace("Physical", "MIG")


@pytest.fixture(autouse=True)
def _slices(fleet: None) -> None:
    put("DeviceClass", device_class("slices", MIG))


def test_alternatives_of_a_wish_that_waits(as_browser: Page, looks: Looks) -> None:
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0")], pods=["p"]))
    key = "slices.deviceclass.resource.k8s.io/devices"
    put("ResourceQuota", quota({key: "2"}, {key: "1"}))
    alternatives = "&alt.1.class=h100-shared&alt.1.count=2&alt.2.class=slices&alt.2.mode=slice&alt.2.profile=1g.10gb"
    as_browser.goto(f"{ADDRESS}&count=2{alternatives}&alt.2.count=2")
    expect(as_browser.locator("#fit")).to_contain_text("with alternative 2 (slices)")
    expect(as_browser.locator("#quota")).to_contain_text("slices.deviceclass.resource.k8s.io/devices")
    looks.at(as_browser, "advanced-alternatives")


def test_every_part_filled_in(as_browser: Page, looks: Looks) -> None:
    tainted("NoExecute")
    put("PriorityClass", priority_class("batch", -5), priority_class("serving", 1000, default=True))
    failing = quote_plus('device.attributes["gpu.portico.dev"].nothing == "x"')
    as_browser.goto(
        f"{ADDRESS}&count=2&cel.1={quote_plus(PRODUCT)}&cel.2={failing}"
        "&constraint.1.attribute=resource.kubernetes.io/pcieRoot&constraint.1.kind=distinctAttribute"
        "&toleration.1.key=gpu.portico.dev/xid&toleration.1.effect=NoExecute&toleration.1.seconds=300"
        "&priority=batch&hours=8&until=2099-12-31"
    )
    looks.at(as_browser, "advanced-full")


def test_every_part_with_a_mistake(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(
        f"{ADDRESS}&alt.1.class=nothing&alt.2.class=slices&alt.2.count=99&cel.1=true+%26%26&constraint.1.attribute=numa"
        "&toleration.1.effect=Never&priority=High+Priority&hours=0&until=2020-01-01&interval=Short"
    )
    expect(as_browser.locator("#errors li")).to_have_count(6)
    looks.at(as_browser, "advanced-wrong")


def test_folded(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(ADDRESS)
    looks.at(as_browser, "advanced-folded")


def test_an_alternative_is_added_moved_and_removed_by_the_keyboard(as_browser: Page) -> None:
    as_browser.goto(ADDRESS)
    as_browser.locator("#otherwise summary").press("Enter")
    as_browser.get_by_label("GPU class of alternative 1").select_option("slices")
    expect(as_browser.get_by_label("GPU class of alternative 2")).to_be_visible()
    expect(as_browser.locator("#text-template")).to_contain_text("firstAvailable")
    as_browser.get_by_label("How much of alternative 1").select_option("slice")
    as_browser.get_by_label("Slice profile of alternative 1").select_option("1g.10gb")
    expect(as_browser.locator("#otherwise")).to_contain_text("By itself it fits on 1 node now.")
    as_browser.get_by_role("link", name="Move up alternative 1").press("Enter")
    expect(as_browser.get_by_label("GPU class of alternative 1")).to_have_value("physical-gpu")
    as_browser.get_by_role("link", name="Remove alternative 1").press("Enter")
    expect(as_browser.locator("#text-template")).to_contain_text("exactly")


def test_the_caret_stays_in_a_condition_while_it_is_answered(as_browser: Page) -> None:
    as_browser.goto(ADDRESS)
    as_browser.locator("#conditions summary").click()
    box = as_browser.get_by_role("textbox", name="Condition 1")
    box.focus()
    box.press_sequentially("tru")
    expect(as_browser.locator("#error-cel\\.1")).to_be_visible()
    box.press_sequentially("e")
    expect(as_browser.locator("#conditions")).to_contain_text("Matches 2 of 2 devices of the class now.")
    box.press("Home")
    with as_browser.expect_response(lambda response: "/request/" in response.url):
        box.press("!")
    expect(as_browser.locator("#conditions")).to_contain_text("Matches 0 of 2")
    focused = as_browser.evaluate("[document.activeElement.id, document.activeElement.selectionStart]")
    assert focused == ["field-cel.1", 1]
    assert box.input_value() == "!true"


def test_what_is_unfolded_by_hand_stays_so_while_another_part_is_filled_in(as_browser: Page) -> None:
    as_browser.goto(ADDRESS)
    as_browser.locator("#tolerations summary").click()
    as_browser.locator("#plans summary").click()
    as_browser.get_by_label("Planned hours").fill("8")
    expect(as_browser.locator("#plans summary")).to_contain_text("1")
    expect(as_browser.get_by_label("Taint key of toleration 1")).to_be_visible()
    assert "hours=8" in as_browser.url
    assert "alt.1.class" not in as_browser.url


def test_a_taint_is_tolerated_by_its_link_and_the_page_stays_there(as_browser: Page) -> None:
    tainted("NoSchedule")
    as_browser.goto(ADDRESS)
    as_browser.locator("#tolerations summary").click()
    as_browser.locator("#tolerations").get_by_role("link", name="Tolerate").click()
    expect(as_browser.locator("#tolerations")).to_contain_text("Accepts gpu.portico.dev/xid=48:NoSchedule.")
    expect(as_browser.locator("#fit")).to_contain_text("Fits now on 1 node")


def test_rows_are_added_without_javascript(browser: Browser, live_server: LiveServer, alice: User) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    value = signed_in(alice).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": value, "url": live_server.url}])
    page = context.new_page()
    page.goto(ADDRESS)
    for part in ("otherwise", "conditions", "plans"):
        page.locator(f"#{part} summary").click()
    page.get_by_label("GPU class of alternative 1").select_option("slices")
    page.get_by_role("textbox", name="Condition 1").fill("true")
    page.get_by_label("Of no use after").fill("2099-12-31")
    page.get_by_role("button", name="Update the preview").click()
    expect(page.get_by_label("GPU class of alternative 2")).to_be_visible()
    expect(page.get_by_label("Condition 2")).to_be_visible()
    expect(page.locator("#text-template")).to_contain_text("firstAvailable")
    assert "until=2099-12-31" in page.url
    context.close()
