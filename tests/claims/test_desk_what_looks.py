"""Classes, modes and amounts in a real browser: both widths, both themes, by keyboard; axe finds nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.models import User
from tests.browser import Looks
from tests.claims.rows import CLASS_KEY, KEY, QUERY, device_class, put, put_gpu_class, quota
from tests.claims.test_desk_what_modes import MIG
from tests.portal_fixtures import signed_in

pytestmark = [pytest.mark.usefixtures("fleet"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, alice: User) -> Iterator[Page]:
    """Alice's browser, signed in."""
    with browser.new_context(base_url=live_server.url) as context:
        value = signed_in(alice).cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": value, "url": live_server.url}])
        yield context.new_page()


def put_catalogue() -> None:
    """Classes in every state."""
    put("DeviceClass", device_class("slices", MIG))
    put_gpu_class("training", title="H100 for training", pricePerHour="2.50", deviceClass={"name": "h100-shared"})
    put_gpu_class("paused", title="Night shift", state="paused", message="Until Monday.")
    put_gpu_class("old", title="Last year's H100", state="replaced", replacedBy="training")
    put_gpu_class("secret", title="Inference only", namespaces=["inference-team"])
    put("ResourceQuota", quota({CLASS_KEY.replace("physical-gpu", "anything"): "0"}, {}))


def test_classes_in_every_state(page: Page, looks: Looks) -> None:
    put_catalogue()
    page.goto(f"/request/?{QUERY}&class=training&form={KEY}")
    looks.at(page, "classes")


def test_a_slice_by_its_profile(page: Page, looks: Looks) -> None:
    put_catalogue()
    page.goto(f"/request/?{QUERY}&class=slices&mode=slice&memory=15Gi&form={KEY}")
    expect(page.get_by_label("Slice profile", exact=True)).to_have_value("1g.20gb")
    looks.at(page, "slice")


def test_a_mode_that_the_class_does_not_give(page: Page, looks: Looks) -> None:
    page.goto(f"/request/?{QUERY}&mode=slice&profile=1g.10gb&form={KEY}")
    looks.at(page, "mode-refused")


def test_by_keyboard_from_a_class_to_a_share(page: Page) -> None:
    page.goto(f"/request/?{QUERY}&class=h100-shared&form={KEY}")
    page.get_by_role("radio", name="Whole The device").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Share A percentage")).to_be_checked()
    expect(page.get_by_label("Share, in percent")).to_be_visible()
    page.get_by_text("Each pod: 0.5 of a card, 39.8 GiB").wait_for()
    assert page.evaluate("document.activeElement.value") == "share"


def test_twenty_gibibytes_lead_to_a_slice_without_javascript(
    browser: Browser, live_server: LiveServer, alice: User
) -> None:
    put("DeviceClass", device_class("slices", MIG))
    with browser.new_context(base_url=live_server.url, java_script_enabled=False) as context:
        value = signed_in(alice).cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": value, "url": live_server.url}])
        page = context.new_page()
        page.goto(f"/request/?ns=ml-team&form={KEY}")
        page.get_by_label("Name", exact=True).fill("small")
        page.get_by_role("radio", name="slices").check()
        page.get_by_role("radio", name="Slice A MIG").check()
        page.get_by_label("Memory, at least").fill("20Gi")
        page.get_by_role("button", name="Update the preview").click()
        expect(page.get_by_role("heading", name="Each pod gets 1 slice 3g.40gb of slices")).to_be_visible()
