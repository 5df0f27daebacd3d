"""Every page of a living demo, by who looks: pictures in both sizes and themes, axe; then the cluster is silent."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import Looks
from tests.journeys.embedded import SECONDS, Demo, play

pytestmark = pytest.mark.programs  # starts a demo
PAGES = {
    "bob": ("/", "/requests/", "/claims/", "/gpu-classes/", "/capacity/", "/devices/"),
    "olga": ("/", "/devices/", "/people/"),
    "gus": ("/", "/request/"),
}


@pytest.fixture(scope="module")
def page(browser: Browser, mixed: Demo) -> Iterator[Page]:
    with browser.new_context(base_url=mixed.url, viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        yield page


@pytest.mark.parametrize(("who", "path"), [(who, path) for who, paths in PAGES.items() for path in paths])
def test_each_page_of_each_person(page: Page, mixed: Demo, looks: Looks, who: str, path: str) -> None:
    play(page, mixed, who)
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    looks.at(page, f"mixed-{who}{path.rstrip('/').replace('/', '-') or '-home'}")


def test_one_of_each_kind_of_card_on_the_form(page: Page, mixed: Demo, looks: Looks) -> None:
    play(page, mixed, "bob")
    for name in ("h200", "l4", "mi300x"):
        page.goto(f"/request/?class={name}&name=one-{name}")
        expect(page.locator("#fit")).to_contain_text("Fits now on")
        looks.at(page, f"mixed-form-{name}")


def test_a_silent_cluster_is_told_and_the_files_are_still_there(page: Page, mixed: Demo, looks: Looks) -> None:
    """The last test here: the simulator stands still until it is over."""
    play(page, mixed, "bob")
    os.kill(mixed.process.pid, signal.SIGSTOP)
    try:
        page.goto("/request/?class=l4&name=while-silent")
        expect(page.locator("#silence")).to_contain_text("No word from the cluster since", timeout=4 * SECONDS)
        page.goto("/request/?class=l4&name=while-silent")
        expect(page.get_by_role("button", name="Create the template")).to_be_disabled()
        expect(page.get_by_role("region", name="Demo")).to_contain_text("The simulator does not say how fast it goes.")
        with page.expect_download():
            page.get_by_role("link", name=re.compile("^Download .*template.yaml")).click()
        looks.at(page, "silent-form")
        page.goto("/")
        looks.at(page, "silent-home")
    finally:
        os.kill(mixed.process.pid, signal.SIGCONT)
    page.goto("/request/?class=l4&name=while-silent")
    expect(page.locator("#silence")).to_be_hidden(timeout=4 * SECONDS)
