"""Every page of a living demo, by who looks: pictures in both sizes and themes, axe; then the cluster is silent."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from simulator.silicon.state import State
from simulator.silicon.tree import Tree
from tests.browser import Looks
from tests.cluster.waiting import wait_until
from tests.journeys.embedded import SECONDS, Demo, end_pod, play, start_pod
from tests.nodedriver.ampere import agent

pytestmark = pytest.mark.programs  # starts a demo
PAGES = {
    "bob": ("/", "/requests/", "/claims/", "/gpu-classes/", "/capacity/", "/devices/"),
    "olga": ("/", "/devices/", "/people/"),
    "gus": ("/", "/request/"),
}


@pytest.fixture(scope="module")
def page(browser: Browser, mixed: Demo) -> Iterator[Page]:
    """In a portal that has read the whole cluster once."""
    with browser.new_context(base_url=mixed.url, viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        play(page, mixed, "bob")
        wait_until(
            lambda: page.goto("/") and not page.get_by_text("Reading the cluster").count(), "a cluster that is read"
        )
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


def test_a_slice_of_a_card_that_needs_a_reset_is_waited_for_in_plain_words(
    page: Page, mixed: Demo, looks: Looks
) -> None:
    """On the node of the mixed fleet whose driver runs, while somebody has its A100 open."""
    play(page, mixed, "bob")
    tree = Tree(mixed.kubeconfig.parent / "2" / "m")
    (card,) = (gpu for gpu in State(tree.state).read().gpus if "A100" in gpu.product)
    page.goto("/request/?class=a100-mig-3g40gb&name=a-slice")
    expect(page.locator("#fit")).to_contain_text("A device is made ready there first")
    looks.at(page, "mixed-form-made-ready")
    page.get_by_role("button", name="Create the template").click()
    page.wait_for_url("**/requests/*/")
    with agent(tree, card) as process:
        pod = start_pod(mixed, page)
        progress = page.locator("#progress")
        expect(progress).to_contain_text("Being made ready")
        expect(progress).to_contain_text(f"held by process {process} (sleep)")
        looks.at(page, "mixed-request-made-ready")
        page.goto("/")
        expect(page.get_by_role("region", name="Waiting")).to_contain_text(pod["metadata"]["name"])
        page.go_back()
    expect(page.locator("#progress .badge").first).to_contain_text("In use", timeout=2 * SECONDS)
    end_pod(mixed, pod)


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
