"""What the request goes into and the files that come out, in a real browser; axe finds nothing."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.models import User
from tests.browser import Looks
from tests.claims.rows import KEY, QUERY
from tests.portal_fixtures import signed_in

pytestmark = [pytest.mark.usefixtures("fleet"), pytest.mark.django_db(transaction=True)]
ADDRESS = f"/request/?{QUERY}&form={KEY}"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: web}]}
"""


def test_a_deployment_with_an_autoscaler(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(ADDRESS)
    as_browser.get_by_role("radio", name="Deployment").check()
    as_browser.get_by_label("Most replicas").fill("5")
    as_browser.locator("label.tab", has_text="Autoscaler").click()
    expect(as_browser.locator("#text-autoscaler")).to_contain_text("maxReplicas: 5")
    looks.at(as_browser, "into-deployment")


def test_a_style_that_can_not_say_the_wish(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(f"{ADDRESS}&share=25&memory=10Gi")
    expect(as_browser.get_by_role("radio", name="Extended resource")).to_be_disabled()
    looks.at(as_browser, "into-closed")


def test_the_tab_stays_while_the_wish_changes(as_browser: Page) -> None:
    as_browser.goto(ADDRESS)
    as_browser.locator("label.tab", has_text="Pod").click()
    expect(as_browser.locator("#text-pod")).to_be_visible()
    as_browser.get_by_role("radio", name="Job").check()
    expect(as_browser.locator("#text-job")).to_be_visible()
    as_browser.locator("label.tab", has_text="Quota").click()
    as_browser.get_by_label("Devices", exact=True).fill("2")
    expect(as_browser.locator("#text-quota")).to_contain_text('"2"')
    expect(as_browser.locator("#text-quota")).to_be_visible()


def test_a_manifest_is_pasted_and_the_caret_stays(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(ADDRESS)
    as_browser.get_by_role("radio", name="My own manifest").check()
    field = as_browser.get_by_label("Manifest", exact=True)
    looks.at(as_browser, "own-empty")
    field.fill(DEPLOYMENT)
    as_browser.locator("label.tab", has_text="Workload").click()
    expect(as_browser.locator("#text-workload")).to_contain_text("resourceClaimTemplateName: trainer")
    assert "manifest=" in as_browser.url
    field.press("Control+Home")
    field.press_sequentially("# a\n")
    expect(as_browser.locator("#text-workload")).to_contain_text("name: web")
    assert as_browser.evaluate("[document.activeElement.id, document.activeElement.selectionStart]") == [
        "field-manifest",
        4,
    ]
    looks.at(as_browser, "own-full")
    as_browser.get_by_label("Devices", exact=True).fill("2")
    expect(as_browser.locator("#text-template")).to_contain_text("count: 2")
    expect(field).to_have_value(f"# a\n{DEPLOYMENT}")
    as_browser.reload()
    expect(field).to_have_value(f"# a\n{DEPLOYMENT}")
    field.fill("kind: Secret")
    expect(as_browser.locator("#error-manifest")).to_contain_text("“Secret” is no workload")
    looks.at(as_browser, "own-wrong")


def test_what_is_being_pasted_can_not_be_created_meanwhile(as_browser: Page) -> None:
    as_browser.goto(f"{ADDRESS}&workload=own")
    as_browser.get_by_label("Manifest", exact=True).fill(DEPLOYMENT)
    button = as_browser.get_by_role("button", name="Create the template")
    expect(button).to_be_enabled()
    as_browser.evaluate("document.getElementById('field-manifest').dispatchEvent(new Event('input', {bubbles: true}))")
    assert button.is_disabled()
    expect(button).to_be_enabled()


def test_copies_are_what_the_page_says(as_browser: Page, live_server: LiveServer) -> None:
    as_browser.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=live_server.url)
    as_browser.goto(ADDRESS)
    as_browser.get_by_role("button", name="Copy link").click()
    as_browser.get_by_role("button", name="Copied").wait_for()
    assert as_browser.evaluate("navigator.clipboard.readText()") == f"{live_server.url}/request/?{QUERY}&form={KEY}"
    as_browser.get_by_role("button", name="Copy the command").click()
    as_browser.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('kubectl apply'))")


def test_a_manifest_without_javascript(browser: Browser, live_server: LiveServer, alice: User) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    client: Client = signed_in(alice)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
    page = context.new_page()
    page.goto(ADDRESS)
    page.get_by_role("radio", name="My own manifest").check()
    page.get_by_role("button", name="Update the preview").click()
    page.get_by_label("Manifest", exact=True).fill(DEPLOYMENT)
    page.get_by_role("button", name="Put the devices in").click()
    assert page.get_by_label("Manifest", exact=True).input_value() == DEPLOYMENT
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download ZIP").click()
    with ZipFile(Path(waiting.value.path())) as bundle:
        names = ["template.yaml", "workload.yaml", "kustomization.yaml", "README.md", "quota.yaml"]
        assert bundle.namelist() == names
        assert b"resourceClaimTemplateName: trainer" in bundle.read("workload.yaml")
    context.close()
