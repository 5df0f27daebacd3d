"""The main job, in a browser: Alice asks for a quarter of a GPU, gets it, sees it, and gives it back.

Real Chromium, uvicorn, Celery, Redis and PostgreSQL; the real API server, scheduler, kubelet and node driver. The
portal's web process comes to the API server through a relay that records what it sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import Looks
from tests.cluster.chart import ServiceAccounts
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.portal import Portal
from tests.cluster.relay import Relay
from tests.cluster.waiting import wait_until
from tests.journeys.hands import Hands
from tests.journeys.overlay import manifests, overlaid
from tests.journeys.test_node import QUARTER_MEMORY_MIB, gpu_of
from tests.journeys.workloads import Workloads

PASSWORD = "quarter-of-a-gpu"
NAMESPACE = "ml-team"
CLASS = "nvidia-h100-mps"
WHOLE_CLASS = "nvidia-h100-physical"
FORM = f"ns={NAMESPACE}&class={CLASS}"
SECONDS = 60_000.0


@pytest.fixture(scope="module")
def relay(cluster: Cluster, accounts: ServiceAccounts) -> Iterator[Relay]:
    cluster.service_account_kubeconfig(accounts.namespace, accounts.web)
    with Relay(cluster.access(f"system:serviceaccount:{accounts.namespace}:{accounts.web}")) as running:
        yield running


@pytest.fixture(scope="module")
def portal(
    cluster: Cluster,
    accounts: ServiceAccounts,
    node_driver: NodeDriver,
    relay: Relay,
    postgres: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Portal]:
    """The portal with the demo's people, on PostgreSQL; the three published classes are there."""
    for name in ("01-training-physical.yaml", "02-inference-mig.yaml", "03-small-mps-share.yaml"):
        cluster.apply(*(document for document in manifests(name) if document["kind"] == "DeviceClass"))
    kubeconfig = relay.kubeconfig(tmp_path_factory.mktemp("relay"))
    with Portal(cluster, accounts, web_kubeconfig=kubeconfig, database_url=postgres) as running:
        running.manage("seeddemo", "--password", PASSWORD)
        yield running


@pytest.fixture
def team(cluster: Cluster, portal: Portal) -> Iterator[Workloads]:
    workloads = Workloads(cluster, NAMESPACE)
    yield workloads
    workloads.clear()


def sign_in(context: BrowserContext, portal: Portal, username: str) -> Page:
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    page.goto(f"{portal.url}/")
    page.get_by_label("User name").fill(username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{portal.url}/")
    return page


@pytest.fixture
def alice(browser: Browser, portal: Portal) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True) as context:
        yield sign_in(context, portal, "alice")


@pytest.fixture
def olga(browser: Browser, portal: Portal) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield sign_in(context, portal, "olga")


def open_form(page: Page, portal: Portal) -> None:
    """The form with the class chosen; a worker that has just started may not have read the classes yet."""

    def is_offered() -> bool:
        page.goto(f"{portal.url}/request/?{FORM}")
        return page.get_by_role("radio", name=CLASS).count() == 1

    wait_until(is_offered, f"{CLASS} on the form", pause=0.5)


def download(page: Page, label: str) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role("link", name=f"Download {label}").click()
    return Path(waiting.value.path()).read_bytes()


def shown_template(page: Page) -> str:
    return page.locator("#text-template").text_content() or ""


def run_as_alice(cluster: Cluster, pod: dict[str, Any]) -> None:
    cluster.user_kubeconfig("portico:alice", [f"portico:{NAMESPACE}"])
    cluster.kubectl("create", "--filename=-", user="portico:alice", input=yaml.safe_dump(pod))


def assert_held_to_a_quarter(driver: NodeDriver, pod: str, device: str) -> None:
    """What the node does about 25 %: the limits of the container's processes, and the daemon's own."""
    entries = driver.node.container_spec(pod, "main", NAMESPACE)["process"]["env"]
    environment = dict(entry.split("=", 1) for entry in entries)
    assert environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    assert environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"0={QUARTER_MEMORY_MIB}M"
    (daemon,) = driver.state.read().mps_daemons
    assert daemon.devices == (gpu_of(driver, device).uuid,)
    assert driver.mps_control(daemon.pipe_directory, "get_default_active_thread_percentage") == "25.0"


def the_operator_sees_it(olga: Page, portal: Portal, result: dict[str, Any], looks: Looks) -> None:
    """Who holds the device stands in the list and on its page."""
    olga.goto(f"{portal.url}/devices/?q=reranker")
    row = olga.get_by_role("row").filter(has=olga.get_by_role("link", name=result["device"], exact=True))
    expect(row).to_contain_text("ml-team")
    expect(row).to_contain_text("25 %")
    looks.at(olga, "devices")
    olga.goto(f"{portal.url}/devices/{result['driver']}/{result['pool']}/{result['device']}/")
    expect(olga.locator("main")).to_contain_text("reranker")
    looks.at(olga, "device")


def test_from_the_form_to_a_running_pod_and_back(
    alice: Page,
    olga: Page,
    portal: Portal,
    relay: Relay,
    node_driver: NodeDriver,
    team: Workloads,
    looks: Looks,
) -> None:
    cluster = portal.cluster
    # The form shows the files as they would be, while she types.
    open_form(alice, portal)
    looks.at(alice, "request-empty")
    alice.get_by_label("Name", exact=True).fill("reranker")
    expect(alice.locator("#text-template")).to_contain_text("name: reranker")
    alice.get_by_role("radio", name="Share A percentage").check()
    alice.get_by_label("Share, in percent").fill("25")
    expect(alice.locator("#text-template")).to_contain_text('sharePercent: "25"')
    looks.at(alice, "request")
    page_text, file = shown_template(alice), download(alice, "template.yaml")
    alice.locator("label.tab", has_text="Pod").click()
    snippet = yaml.safe_load(download(alice, "pod.yaml"))

    # Create: the same bytes on the page, in the file, and in what the API server was sent.
    alice.get_by_role("button", name="Create the template").click()
    alice.wait_for_url("**/requests/*/")
    request_url = alice.url
    (sent,) = [each for each in relay.writes() if each.path.endswith("/resourceclaimtemplates")]
    assert sent.body == file
    assert page_text.strip() == file.decode().strip()
    assert sent.header("Impersonate-User") == ["portico:alice"]
    looks.at(alice, "request-created")

    # The page's own snippet, started by Alice; the page follows by itself.
    run_as_alice(cluster, overlaid(snippet))
    team.await_running(1)
    (result,) = team.results("reranker")
    assert result["consumedCapacity"]["sharePercent"] == "25"
    assert_held_to_a_quarter(node_driver, "reranker", result["device"])
    expect(alice.locator("#progress")).to_contain_text("In use", timeout=SECONDS)
    expect(alice.locator("#progress")).to_contain_text(f"node-1/{result['device']}")
    looks.at(alice, "request-in-use")
    alice.goto(f"{portal.url}/claims/")
    expect(alice.get_by_role("row").filter(has_text="reranker")).to_contain_text("25 %")
    looks.at(alice, "claims")

    the_operator_sees_it(olga, portal, result, looks)

    # Back: the pod, then the request; both are seen gone.
    cluster.kubectl("delete", "pod", "reranker", f"--namespace={NAMESPACE}", user="portico:alice")
    alice.goto(f"{portal.url}/claims/")
    expect(alice.get_by_role("row").filter(has_text="reranker")).to_have_count(0, timeout=SECONDS)
    alice.goto(request_url)
    alice.get_by_role("link", name="Delete").click()
    looks.at(alice, "withdraw")
    alice.get_by_role("button", name="Delete the template").click()
    expect(alice.get_by_role("status")).to_contain_text("The template reranker in ml-team was deleted.")
    expect(alice.get_by_role("row").filter(has_text="reranker")).to_contain_text("Withdrawn")
    assert team.templates() == []
    looks.at(alice, "requests")


def test_all_of_it_works_without_javascript(browser: Browser, portal: Portal, team: Workloads) -> None:
    with browser.new_context(java_script_enabled=False, accept_downloads=True) as context:
        page = sign_in(context, portal, "alice")
        open_form(page, portal)
        page.get_by_label("Name", exact=True).fill("plain")
        page.get_by_role("radio", name="Share A percentage").check()
        page.get_by_label("Share, in percent").fill("50")
        page.get_by_role("button", name="Update").click()
        assert "name: plain" in shown_template(page)
        page.get_by_role("button", name="Create the template").click()
        page.wait_for_url("**/requests/*/")
        assert [item["metadata"]["name"] for item in team.templates()] == ["plain"]
        page.get_by_role("link", name="Delete").click()
        page.get_by_role("button", name="Delete the template").click()
        assert team.templates() == []


def test_a_first_gpu_takes_four_interactions_at_most(
    alice: Page, portal: Portal, cluster: Cluster, team: Workloads
) -> None:
    """From the first page to the created template; then her pod, by the page's own file."""
    hands = Hands()
    hands.press(alice.get_by_role("main").get_by_role("link", name="Request a GPU"))
    hands.press(alice.locator(f'input[type="radio"][value="{WHOLE_CLASS}"]'))
    hands.write(alice.get_by_label("Name", exact=True), "first")
    expect(alice.locator("#text-pod")).to_contain_text("name: first")
    expect(alice.locator("#text-template")).to_contain_text(WHOLE_CLASS)
    expect(alice.locator("#fit")).to_contain_text("Fits now on")
    pod = yaml.safe_load(alice.locator("#text-pod").text_content() or "")
    hands.press(alice.get_by_role("button", name="Create the template"))
    alice.wait_for_url("**/requests/*/")
    assert hands.done <= 4

    run_as_alice(cluster, overlaid(pod))
    team.await_running(1)
    (result,) = team.results("first")
    assert re.fullmatch(r"gpu-\d", result["device"])
    assert result["consumedCapacity"]["sharePercent"] == "100"
    expect(alice.locator("#progress")).to_contain_text("In use", timeout=SECONDS)
    expect(alice.locator("#progress")).to_contain_text(f"node-1/{result['device']}")


def _is_probe(event: dict[str, Any], accounts: ServiceAccounts) -> bool:
    """Whether the worker only finds out what the cluster can do, by a dry run that stores nothing."""
    return event["user"]["username"].endswith(f":{accounts.worker}") and "dryRun=All" in event["requestURI"]


def test_the_audit_log_knows_a_person_for_every_write(
    cluster: Cluster, accounts: ServiceAccounts, portal: Portal
) -> None:
    """After the tests above: whatever the portal's accounts wrote since it started, they wrote as somebody."""
    ours = {f"system:serviceaccount:{accounts.namespace}:{name}" for name in (accounts.web, accounts.worker)}
    since = f"{portal.started:%Y-%m-%dT%H:%M:%S}"
    writes = [
        event
        for event in cluster.audit()
        if event["user"].get("username") in ours  # a call with an unknown token has no user
        and event["verb"] not in ("get", "list", "watch")
        and event["requestReceivedTimestamp"] >= since
        and not _is_probe(event, accounts)
    ]

    assert {event["user"]["username"].rpartition(":")[2] for event in writes} == {accounts.web}
    assert {event.get("impersonatedUser", {}).get("username") for event in writes} == {"portico:alice"}
    assert {event["verb"] for event in writes} == {"create", "delete"}


def test_pages_that_are_empty_and_pages_of_others(browser: Browser, portal: Portal, looks: Looks) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{portal.url}/")
        looks.at(page, "sign-in")
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        charlie = sign_in(context, portal, "charlie")
        looks.at(charlie, "home")
        charlie.goto(f"{portal.url}/claims/")
        looks.at(charlie, "claims-empty")
        charlie.goto(f"{portal.url}/devices/")
        assert NAMESPACE not in (charlie.locator("main").text_content() or "")
        looks.at(charlie, "devices-of-others")
