"""Every page of claims in a real browser: both widths, both themes, full, empty and refusing; axe finds nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from claims.lifecycle import State
from gpuinventory.models import StreamCursor
from portal.models import Team, User
from tests.browser import Looks
from tests.claims.rows import CLASS_KEY, KEY, QUERY, claims_from, device_class, gpu_request, put, quota, template
from tests.gpuinventory.fleet import claim, device
from tests.portal_fixtures import signed_in

pytestmark = [pytest.mark.usefixtures("fleet"), pytest.mark.django_db(transaction=True)]


def test_the_form_while_it_lacks_something(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(f"/request/?ns=ml-team&form={KEY}")
    looks.at(as_browser, "request-empty")


def test_the_form_with_a_share(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(f"/request/?{QUERY}&class=h100-shared&share=25&memory=10Gi&form={KEY}")
    looks.at(as_browser, "request-share")


def test_a_wish_that_waits_and_one_that_never_fits(as_browser: Page, looks: Looks) -> None:
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0")], pods=["p"]))
    put("ResourceQuota", quota({CLASS_KEY: "8", f"physical-gpu-{'x' * 60}": "1"}, {CLASS_KEY: "7"}))
    as_browser.goto(f"/request/?{QUERY}&count=2&form={KEY}")
    as_browser.locator("#elimination-1 summary").click()
    looks.at(as_browser, "fit-waits")
    as_browser.goto(f"/request/?{QUERY}&memory=100Gi&form={KEY}")
    looks.at(as_browser, "fit-never")


def test_what_was_opened_stays_open_while_the_wish_changes(as_browser: Page) -> None:
    as_browser.goto(f"/request/?{QUERY}&form={KEY}")
    as_browser.locator("#elimination-1 summary").click()
    as_browser.get_by_label("Devices", exact=True).fill("3")
    expect(as_browser.locator("#fit")).to_contain_text("no node has 3 of these")
    expect(as_browser.locator("#elimination-1 table")).to_be_visible()


def test_a_proposal_is_followed_by_the_keyboard(as_browser: Page) -> None:
    as_browser.goto(f"/request/?{QUERY}&count=3&form={KEY}")
    as_browser.get_by_role("link", name="2 instead of 3").press("Enter")
    expect(as_browser.locator("#fit")).to_contain_text("Fits now on 1 node")
    expect(as_browser.get_by_label("Devices", exact=True)).to_have_value("2")


def test_a_class_that_fails_on_a_device(as_browser: Page, looks: Looks) -> None:
    put("DeviceClass", device_class("careless", 'device.attributes["gpu.portico.dev"].nothing == "x"'))
    as_browser.goto(f"/request/?{QUERY}&class=careless&form={KEY}")
    looks.at(as_browser, "class-fault")
    as_browser.goto(f"/request/?{QUERY}&form={KEY}&cel.1=device.attributes[device.driver].nothing+%3D%3D+1")
    looks.at(as_browser, "fit-aborts")


def test_the_form_with_wrong_values(as_browser: Page, looks: Looks) -> None:
    as_browser.goto(f"/request/?{QUERY}&share=25&count=2&memory=lots&name=My+GPU&form={KEY}")
    looks.at(as_browser, "request-wrong")


def test_the_list_of_requests_empty(as_browser: Page, looks: Looks) -> None:
    as_browser.goto("/requests/")
    looks.at(as_browser, "requests-empty")
    as_browser.goto("/claims/")
    looks.at(as_browser, "claims-empty")


def test_requests_and_claims_in_every_state(as_browser: Page, looks: Looks, alice: User, ml_team: Team) -> None:
    for number, state in enumerate(State):
        gpu_request(alice, ml_team, f"job-{state.replace(' ', '-')}", state=state, key=f"{KEY}{number}")
    row = gpu_request(alice, ml_team)
    put("ResourceClaimTemplate", template("ml-team", "trainer"))
    given = [device("node-1", "gpu-0", percent=25)]
    put("ResourceClaim", *claims_from(KEY, "ml-team", ["trainer-x7k2p"], devices=given, pods=["trainer"]))
    pod = [{"apiVersion": "v1", "kind": "Pod", "name": "trainer-2", "uid": "u", "controller": True}]
    put("ResourceClaim", *claims_from(KEY, "ml-team", ["trainer-2-b9d4w"], ownerReferences=pod))
    put("ResourceClaim", claim("ml-team", "by-hand", [device("node-1", "gpu-1")]))
    as_browser.goto("/requests/")
    looks.at(as_browser, "requests")
    as_browser.goto(f"/requests/{row.pk}/")
    looks.at(as_browser, "request-detail")
    as_browser.goto(f"/requests/{row.pk}/withdraw/")
    looks.at(as_browser, "request-withdraw")
    as_browser.goto("/claims/")
    looks.at(as_browser, "claims")


def test_a_create_that_is_refused(as_browser: Page, looks: Looks, away: str) -> None:
    as_browser.goto(f"/request/?{QUERY}&form={KEY}")
    as_browser.get_by_role("button", name="Create the template").click()
    expect(as_browser.get_by_role("alert")).to_contain_text(f"no answer from {away}")
    looks.at(as_browser, "create-away")
    as_browser.evaluate("""() => {
        document.querySelector("[name=digest]").value = "0";
        const shown = document.querySelector("[name=shown]");
        shown.value = shown.value.replace("count: 1", "count: 2");
    }""")
    as_browser.get_by_role("button", name="Create the template").click()
    expect(as_browser.get_by_role("alert")).to_contain_text("is not the one you last saw")
    looks.at(as_browser, "create-changed")


def test_a_silent_cluster_leaves_the_files_and_takes_the_buttons(as_browser: Page, looks: Looks) -> None:
    StreamCursor.objects.update(synced_at=timezone.now() - timedelta(minutes=9), last_error="no answer: refused")
    as_browser.goto(f"/request/?{QUERY}&form={KEY}")
    expect(as_browser.get_by_role("button", name="Create the template")).to_be_disabled()
    expect(as_browser.get_by_role("button", name="Validate")).to_be_disabled()
    expect(as_browser.get_by_role("link", name="Download template.yaml")).to_be_visible()
    looks.at(as_browser, "request-silent")


def test_a_guest(as_browser: Page, looks: Looks, alice: User) -> None:
    alice.memberships.all().delete()
    as_browser.goto("/request/")
    looks.at(as_browser, "request-guest")


def test_the_preview_follows_what_is_typed_and_the_address_follows_the_preview(as_browser: Page) -> None:
    as_browser.goto(f"/request/?ns=ml-team&form={KEY}")
    as_browser.get_by_label("Name", exact=True).press_sequentially("reranker", delay=20)
    as_browser.get_by_text("Still to come: GPU class.").wait_for()
    as_browser.get_by_label("h100-shared").check()
    as_browser.get_by_role("radio", name="Share A percentage").check()
    as_browser.get_by_label("Share, in percent").fill("25")
    as_browser.get_by_text('sharePercent: "25"').wait_for()
    assert as_browser.get_by_label("Name", exact=True).input_value() == "reranker"
    assert "name=reranker" in as_browser.url
    assert "share=25" in as_browser.url
    as_browser.reload()
    assert as_browser.get_by_text('sharePercent: "25"').is_visible()


def test_a_preview_does_not_wait_for_what_is_missing_and_leaves_the_focus(as_browser: Page) -> None:
    as_browser.goto(f"/request/?ns=ml-team&form={KEY}")
    as_browser.get_by_label("h100-shared").check()
    as_browser.get_by_text("Still to come: Name.").wait_for()
    assert as_browser.evaluate("document.activeElement.value") == "h100-shared"


def test_what_is_being_changed_can_not_be_created_meanwhile(as_browser: Page) -> None:
    as_browser.goto(f"/request/?{QUERY}&form={KEY}")
    button = as_browser.get_by_role("button", name="Create the template")
    assert button.is_enabled()
    as_browser.evaluate("document.getElementById('field-count').dispatchEvent(new Event('input', {bubbles: true}))")
    assert button.is_disabled()
    expect(button).to_be_enabled()


def test_the_focus_and_the_caret_stay_where_they_are(as_browser: Page) -> None:
    as_browser.goto(f"/request/?{QUERY}&form={KEY}")
    name = as_browser.get_by_label("Name", exact=True)
    name.focus()
    name.press("Home")
    with as_browser.expect_response(lambda response: "/request/" in response.url):
        name.press("x")
    as_browser.get_by_text("name: xtrainer").first.wait_for()
    assert as_browser.evaluate("[document.activeElement.id, document.activeElement.selectionStart]") == [
        "field-name",
        1,
    ]


def test_without_an_answer_the_plain_way_is_left(as_browser: Page, faults: list[str]) -> None:
    as_browser.goto(f"/request/?{QUERY}&form={KEY}")
    as_browser.route("**/request/**", lambda route: route.abort())
    as_browser.get_by_label("Devices", exact=True).fill("2")
    expect(as_browser.get_by_role("button", name="Update the preview")).to_be_visible()
    expect(as_browser.get_by_role("button", name="Create the template")).to_be_disabled()
    as_browser.unroute_all()
    faults.clear()
    as_browser.get_by_role("button", name="Update the preview").click()
    expect(as_browser.get_by_role("heading", name="Each pod gets 2 whole devices")).to_be_visible()


def test_a_copy_is_what_the_download_gives(as_browser: Page, live_server: LiveServer, alice: User) -> None:
    as_browser.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=live_server.url)
    as_browser.goto(f"/request/?{QUERY}&form={KEY}")
    as_browser.get_by_role("radio", name="Pod", exact=True).check(force=True)
    as_browser.get_by_role("button", name="Copy pod.yaml").click()
    as_browser.get_by_role("button", name="Copied").wait_for()
    copied = as_browser.evaluate("navigator.clipboard.readText()")
    assert copied.encode() == signed_in(alice).get(f"/request/pod.yaml?{QUERY}&form={KEY}").content


def test_everything_works_without_javascript(browser: Browser, live_server: LiveServer, alice: User) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    value = signed_in(alice).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": value, "url": live_server.url}])
    page = context.new_page()
    page.goto("/request/")
    page.get_by_label("Name", exact=True).fill("reranker")
    page.get_by_role("radio", name="h100-shared").check()
    page.get_by_role("radio", name="Share A percentage").check()
    page.get_by_label("Share, in percent").fill("25")
    page.get_by_role("button", name="Update the preview").click()
    assert page.get_by_text('sharePercent: "25"').is_visible()
    page.get_by_role("radio", name="Quota").check(force=True)
    assert page.get_by_text("ResourceQuota").is_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download quota.yaml").click()
    assert download.value.suggested_filename == "reranker-quota.yaml"
    context.close()
