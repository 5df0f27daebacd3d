"""The request form used in every way: wrong, shared, gone back to, without script, by keyboard, small, enlarged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.journeys.embedded import SECONDS, Demo

pytestmark = pytest.mark.programs  # starts a demo

# What can't be read, and what is not there for this person; what can't be had is told once the rest can be read.
WRONG = {
    "ns": "inference-team",
    "class": "no-such-class",
    "name": "Bad_Name",
    "count": "99",
    "memory": "a lot",
    "workload": "daemon",
    "preset": "none-such",
    "style": "loud",
}
NOT_TO_BE_HAD = {"ns": "inference-team", "class": "no-such-class", "until": "2020-01-01"}
WISH = "ns=ml-team&name=shared-wish&class=h100&count=2&memory=40Gi&workload=deployment&replicas=3"
VALUES = """() => JSON.stringify([...new FormData(document.getElementById("wish"))])"""
COVERED = """() => {
  const at = document.activeElement, box = at.getBoundingClientRect();
  if (at === document.body || !box.width || !box.height) return "";
  const x = Math.min(Math.max(box.x + box.width / 2, 1), innerWidth - 2);
  const top = document.elementFromPoint(x, Math.min(Math.max(box.y + box.height / 2, 1), innerHeight - 2));
  const label = at.closest("label");
  if (top && (at.contains(top) || top.contains(at) || label?.contains(top))) return "";
  return `${at.outerHTML.slice(0, 90)} is under ${top?.outerHTML.slice(0, 90)}`;
}"""


def opened(browser: Browser, demo: Demo, **options: Any) -> BrowserContext:
    settings = {"base_url": demo.url, "viewport": {"width": 1280, "height": 900}} | options
    context = browser.new_context(**settings)
    context.set_default_timeout(SECONDS)
    return context


@pytest.fixture
def page(browser: Browser, article: Demo) -> Iterator[Page]:
    with opened(browser, article) as context:
        yield context.new_page()


def named(page: Page) -> Locator:
    return page.get_by_label("Name", exact=True)


def gpu_class(page: Page, name: str) -> Locator:
    return page.get_by_role("radio").and_(page.locator(f'[name="class"][value="{name}"]'))


@pytest.mark.parametrize("wrong", [WRONG, NOT_TO_BE_HAD], ids=["can't be read", "can't be had"])
def test_everything_wrong_is_said_once_and_leads_to_its_field(page: Page, wrong: dict[str, str]) -> None:
    page.goto("/request/?" + "&".join(f"{key}={value}" for key, value in ({"name": "a-name"} | wrong).items()))
    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    links = summary.get_by_role("link")
    targets = [link.get_attribute("href") or "" for link in links.all()]
    assert targets == list(dict.fromkeys(targets)), "one entry for a field"
    assert set(targets) == {f"#field-{key}" for key in wrong}
    for link, target in zip(links.all(), targets, strict=True):
        link.click()
        field = page.locator(f'[id="{target.removeprefix("#")}"]')
        expect(field).to_be_focused()
        said = [page.locator(f'[id="{each}"]') for each in (field.get_attribute("aria-describedby") or "").split()]
        faults = [each.inner_text() for each in said if (each.get_attribute("id") or "").startswith("error-")]
        assert len(faults) == 1, f"{target} says {faults}"
    assert page.get_by_role("button", name=re.compile("^Create the")).count() == 0


def test_what_is_mended_is_no_longer_told(page: Page) -> None:
    page.goto("/request/?class=h100&name=Bad_Name&count=99")
    expect(page.locator("[aria-invalid=true]")).to_have_count(2)
    named(page).fill("good-name")
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)
    expect(named(page)).to_be_focused()
    page.get_by_label("Devices", exact=True).fill("2")
    expect(page.locator("[aria-invalid=true]")).to_have_count(0)
    expect(page.get_by_role("button", name="Create the template")).to_be_enabled()


def test_a_link_brings_a_colleague_the_same_form(page: Page, browser: Browser, article: Demo) -> None:
    page.goto(f"/request/?{WISH}")
    expect(page.locator("#text-template")).to_contain_text("name: shared-wish")
    named(page).fill("shared-wish-2")
    expect(page.locator("#text-template")).to_contain_text("name: shared-wish-2")
    with opened(browser, article) as context:
        other = context.new_page()
        other.goto("/")
        other.locator(".me summary").click()
        other.get_by_role("button", name="alice").click()
        other.goto(page.url)
        assert other.evaluate(VALUES) == page.evaluate(VALUES)
        files, same = ([each.text_content() for each in at.locator("code[id^=text-]").all()] for at in (page, other))
        assert files == same
        assert len(files) > 2
        assert "replicas: 3" in str(files)


def test_the_back_button_brings_back_what_was_asked(page: Page) -> None:
    page.goto("/request/?class=h100&name=there-and-back&count=8")
    page.locator("#fit").get_by_role("link", name=re.compile(r"^\d instead of 8")).click()
    expect(page.locator("#fit")).to_contain_text("Fits now on")
    page.go_back()
    expect(page.get_by_label("Devices", exact=True)).to_have_value("8")
    expect(page.locator("#fit")).to_contain_text("Will wait")
    named(page).fill("there-and-back-2")
    expect(page.locator("#text-template")).to_contain_text("name: there-and-back-2")
    page.get_by_role("button", name="Create the template").click()
    page.wait_for_url("**/requests/*/")
    page.go_back()
    expect(named(page)).to_have_value("there-and-back-2")
    page.reload()
    expect(page.get_by_text("This form has created its template already")).to_be_visible()


def test_without_a_script_everything_is_there(browser: Browser, article: Demo) -> None:
    with opened(browser, article, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/")
        page.get_by_role("main").get_by_role("link", name="Request a GPU").click()
        named(page).fill("without-script")
        gpu_class(page, "h100").check()
        page.get_by_label("Devices", exact=True).fill("2")
        page.get_by_role("button", name="Update the preview").click()
        expect(page.locator("#fit")).to_contain_text("Fits now on")
        page.locator("label.tab", has_text="README").click()
        expect(page.locator("#text-readme")).to_be_visible()
        page.get_by_role("button", name="Create the template").click()
        page.wait_for_url("**/requests/*/")
        expect(page.locator("#progress .badge").first).to_contain_text("Waiting for a pod")
        page.get_by_role("button", name="×10").click()  # noqa: RUF001  # the sign on the page
        assert article.call("GET", "/simulator/clock")["rate"] == 10
        page.get_by_role("button", name="Pause").click()
        assert article.call("GET", "/simulator/clock")["rate"] == 0
        page.locator(".me summary").click()
        page.get_by_role("button", name="olga").click()
        page.goto("/devices/")
        expect(page.get_by_role("heading", name="Devices", level=1)).to_be_visible()


def to(page: Page, place: Locator, key: str = "Tab", most: int = 120) -> None:
    """Press the key until the focus is there."""
    for _ in range(most):
        if place.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press(key)
    pytest.fail(f"{place} is not reached by {most} × {key}")  # noqa: RUF001


def test_by_keyboard_alone(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    to(page, page.get_by_role("main").get_by_role("link", name="Request a GPU"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/request/**")
    to(page, named(page))
    page.keyboard.type("by-keyboard")
    to(page, page.locator('[name="class"]:not(:disabled)').first)
    page.keyboard.press("Space")
    to(page, gpu_class(page, "h100"), "ArrowDown", 12)
    to(page, page.get_by_label("Devices", exact=True))
    page.keyboard.press("ArrowUp")
    expect(page.locator("#text-template")).to_contain_text("count: 2")
    expect(page.get_by_label("Devices", exact=True)).to_be_focused()
    create = page.get_by_role("button", name="Create the template")
    expect(create).to_be_enabled()
    to(page, create)
    page.keyboard.press("Enter")
    page.wait_for_url("**/requests/*/")
    to(page, page.locator(".me summary"), "Shift+Tab")
    page.keyboard.press("Enter")
    to(page, page.get_by_role("button", name="olga"))
    page.keyboard.press("Enter")
    expect(page.locator(".me summary")).to_contain_text("olga")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        pytest.param({"viewport": {"width": 390, "height": 844}, "has_touch": True}, "phone", id="390 px"),
        pytest.param({"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}, "zoom", id="200 % zoom"),
        pytest.param({"color_scheme": "dark"}, "dark", id="dark"),
        pytest.param({"forced_colors": "active"}, "forced", id="forced colours"),
    ],
)
def test_small_enlarged_dark_and_in_forced_colours(
    browser: Browser, article: Demo, options: dict[str, Any], name: str, looks: Any
) -> None:
    with opened(browser, article, **options) as context:
        page = context.new_page()
        page.goto(f"/request/?class=h100&name=seen-{name}&count=8")
        expect(page.locator("#fit")).to_contain_text("Will wait")
        page.screenshot(path=looks.folder / f"form-{name}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert Axe().run(page).violations_count == 0
        covered = []
        for _ in range(90):
            page.keyboard.press("Tab")
            covered.append(page.evaluate(COVERED))
        assert [each for each in covered if each] == []
        gpu_class(page, "h100").check()
        page.get_by_label("Devices", exact=True).fill("1")
        expect(page.locator("#fit")).to_contain_text("Fits now on")
        page.get_by_role("button", name="Create the template").click()
        page.wait_for_url("**/requests/*/")
        page.screenshot(path=looks.folder / f"request-{name}.png", full_page=True)
        assert Axe().run(page).violations_count == 0


def test_a_phone_reaches_every_page_by_more(browser: Browser, article: Demo) -> None:
    with opened(browser, article, viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        page.goto("/")
        bar = page.get_by_role("navigation", name="Portal")
        for label, path in (("Claims", "/claims/"), ("My requests", "/requests/")):
            bar.get_by_role("link", name=label).click()
            page.wait_for_url(f"**{path}")
        bar.locator("summary").click()
        bar.get_by_role("link", name="Capacity").click()
        page.wait_for_url("**/capacity/")
        expect(bar.locator("summary")).to_have_class("here")
        bar.locator("summary").click()
        page.keyboard.press("Escape")
        expect(bar.get_by_role("link", name="Capacity")).to_be_hidden()
