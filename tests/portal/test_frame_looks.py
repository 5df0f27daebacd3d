"""The frame of every page in a real browser: the first reading, the bar of a phone, the menu, forced colours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from gpuinventory.kinds import KINDS
from gpuinventory.selectors import held
from gpuinventory.services import lease
from portal.models import User
from tests.browser import Looks
from tests.claims.rows import put_fleet
from tests.portal_fixtures import signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, alice: User) -> Iterator[Page]:
    """Alice's browser."""
    held.forget()
    session = signed_in(alice).cookies["sessionid"].value
    with browser.new_context(base_url=live_server.url) as context:
        context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        yield context.new_page()


def read(kinds: tuple[str, ...]) -> None:
    """A worker has read these."""
    for kind in kinds:
        lease.take(kind, "test", timezone.now())
        lease.keep(kind, "test", timezone.now())


def test_the_first_reading_is_followed_until_it_is_done(page: Page, looks: Looks) -> None:
    page.goto("/")
    bar = page.locator("#silence")
    expect(bar).to_have_text(
        f"Reading the cluster: 0 of {len(KINDS)} kinds so far. Pages fill when a worker reaches it."
    )
    read(KINDS[:4])
    expect(bar).to_have_text(f"Reading the cluster: 4 of {len(KINDS)} kinds so far. Pages fill by themselves.")
    looks.at(page, "frame-reading")
    read(KINDS)
    expect(bar).to_be_hidden()
    expect(page.locator("#freshness")).to_have_text("live")
    looks.at(page, "frame-first-visit")


def test_the_form_fills_with_classes_while_it_is_open(page: Page, looks: Looks) -> None:
    page.goto("/request/")
    page.get_by_label("Name", exact=True).fill("early-bird")
    expect(page.get_by_text("No DeviceClass was read from the cluster yet.")).to_be_visible()
    looks.at(page, "form-before-classes")
    put_fleet()
    expect(page.get_by_role("radio").and_(page.locator("[name=class]")).first).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("early-bird")


def test_a_phone_has_four_entries_and_the_rest_behind_more(page: Page, looks: Looks) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/capacity/")
    bar = page.get_by_role("navigation", name="Portal")
    expect(bar.get_by_role("link")).to_have_count(4)
    expect(bar.locator("summary")).to_have_class("here")
    bar.locator("summary").click()
    expect(bar.get_by_role("link", name="Devices")).to_be_visible()
    page.screenshot(path=looks.folder / "frame-more-390.png")
    page.keyboard.press("Escape")
    expect(bar.get_by_role("link")).to_have_count(4)
    boxes = [each.bounding_box() for each in bar.locator("li > a:visible, summary").all()]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box]
    assert len(ends) == 5
    assert all(left[1] <= right[0] + 0.5 for left, right in pairwise(ends)), ends


def test_in_forced_colours_the_present_page_is_marked(page: Page, looks: Looks) -> None:
    page.emulate_media(forced_colors="active")
    page.goto("/claims/")
    marked = page.locator(".rail a[aria-current]")
    assert marked.evaluate("each => getComputedStyle(each).outlineStyle") == "solid"
    page.screenshot(path=looks.folder / "frame-forced.png")
