"""The catalogue, a class and its editor in a real browser: both widths, both themes; axe finds nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from claims.models import GPUClassEvent
from gpuinventory.models import ClusterObject
from portal.models import User
from tests.browser import Looks
from tests.claims.rows import put_gpu_class
from tests.portal_fixtures import signed_in

pytestmark = [pytest.mark.usefixtures("fleet"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def as_browser(browser: Browser, live_server: LiveServer, olga: User) -> Iterator[Page]:
    """The operator's browser, signed in."""
    context = browser.new_context(base_url=live_server.url)
    value = signed_in(olga).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": value, "url": live_server.url}])
    yield context.new_page()
    context.close()


def test_the_catalogue_and_a_class(as_browser: Page, looks: Looks) -> None:
    put_gpu_class("training", title="H100 for training", description="Whole cards for long runs.", pricePerHour="2.50")
    put_gpu_class("old", title="The old way", state="paused", message="New cards come on Monday.")
    GPUClassEvent.objects.create(username="olga", name="training", verb="create", result="stored")
    refused = "x.training.h100-80gb.example.com is forbidden: User olga cannot patch resource gpuclasses"
    GPUClassEvent.objects.create(
        username="olga", name="training", verb="change", result="server.forbidden", detail=refused, request_id="a1" * 16
    )
    as_browser.goto("/gpu-classes/")
    looks.at(as_browser, "gpu-classes")
    as_browser.get_by_role("link", name="H100 for training").click()
    looks.at(as_browser, "gpu-class")
    as_browser.get_by_role("link", name="Delete").click()
    looks.at(as_browser, "gpu-class-delete")


def test_an_empty_catalogue(as_browser: Page, looks: Looks) -> None:
    ClusterObject.objects.filter(kind="DeviceClass").delete()
    as_browser.goto("/gpu-classes/")
    expect(as_browser.get_by_text("No GPU class yet")).to_be_visible()
    looks.at(as_browser, "gpu-classes-empty")


def test_the_editor_checks_while_a_selector_is_typed(as_browser: Page, looks: Looks) -> None:
    as_browser.goto("/gpu-classes/+new/")
    field = as_browser.get_by_label("Selectors (CEL)")
    field.fill('device.attributes["other.example.com"].colour == "red"')
    expect(as_browser.locator("#matches")).to_contain_text("devices match now")
    expect(as_browser.locator("#matches")).to_contain_text("no such key: colour")
    expect(field).to_be_focused()
    looks.at(as_browser, "gpu-class-editor")
    as_browser.get_by_role("button", name="Store in the cluster").click()
    expect(as_browser.get_by_text("This field is required").first).to_be_visible()
    looks.at(as_browser, "gpu-class-editor-wrong")
