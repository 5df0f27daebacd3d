"""People ask for GPUs in a browser on the simulated cluster: from the first page until a pod holds the devices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import Looks
from tests.cluster.waiting import wait_until
from tests.journeys.embedded import SECONDS, Demo, claims_of, end_pod, start_pod
from tests.journeys.hands import Hands

pytestmark = pytest.mark.programs  # starts a demo


@pytest.fixture
def page(browser: Browser, article: Demo) -> Iterator[Page]:
    """The browser of somebody who was never here."""
    with browser.new_context(base_url=article.url, viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        yield page


def named(page: Page) -> Locator:
    return page.get_by_label("Name", exact=True)


def gpu_class(page: Page, name: str) -> Locator:
    return page.get_by_role("radio").and_(page.locator(f'[name="class"][value="{name}"]'))


def mode(page: Page, name: str) -> Locator:
    return page.get_by_role("radio").and_(page.locator(f'[name="mode"][value="{name}"]'))


def in_use(page: Page) -> None:
    expect(page.locator("#progress .badge").first).to_contain_text("In use", timeout=SECONDS)


def test_a_first_gpu_takes_four_interactions_at_most(page: Page, article: Demo) -> None:
    hands = Hands()
    page.goto("/")
    hands.press(page.get_by_role("main").get_by_role("link", name="Request a GPU"))
    hands.press(gpu_class(page, "h100"))
    hands.write(named(page), "first-gpu")
    expect(page.locator("#fit")).to_contain_text("Fits now on")
    hands.press(page.get_by_role("button", name="Create the template"))
    page.wait_for_url("**/requests/*/")
    assert hands.done <= 4
    pod = start_pod(article, page)
    in_use(page)
    (claim,) = claims_of(article, pod["metadata"]["name"])
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    assert re.fullmatch(r"gpu-\d", given["device"])
    expect(page.locator("#progress")).to_contain_text(f"{given['pool']}/{given['device']}")
    end_pod(article, pod)


def test_a_quarter_is_held_to_a_quarter_on_its_node(page: Page, article: Demo, looks: Looks) -> None:
    page.goto("/request/")
    gpu_class(page, "h100-share").check()
    named(page).fill("a-quarter")
    mode(page, "share").check()
    page.get_by_label("Share, in percent").fill("25")
    page.get_by_label(re.compile("^Memory, at")).fill("10Gi")
    expect(page.locator("#text-template")).to_contain_text('sharePercent: "25"')
    expect(page.locator("#fit")).to_contain_text("Fits now on")
    looks.at(page, "ask-share")
    page.get_by_role("button", name="Create the template").click()
    page.wait_for_url("**/requests/*/")
    # Two nodes of this cluster run the real driver; only there something can be held to its share.
    pod = start_pod(article, page, nodeSelector={"example.org/pool": "small"})
    in_use(page)
    (claim,) = claims_of(article, pod["metadata"]["name"])
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    assert given["consumedCapacity"] == {"memory": "10Gi", "sharePercent": "25"}
    spec = wait_until(lambda: cdi_spec(article, claim), "the claim's CDI file")
    (device,) = spec["devices"]
    assert {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10240M"} <= set(
        device["containerEdits"]["env"]
    )
    end_pod(article, pod)


def cdi_spec(demo: Demo, claim: dict[str, Any]) -> Any:
    """What the claim's node hands to the container's runtime; None before the driver has written it."""
    number = claim["status"]["allocation"]["devices"]["results"][0]["pool"].removeprefix("node-")
    path: Path = demo.kubeconfig.parent / number / "cdi" / f"gpu.portico.dev-claim-{claim['metadata']['uid']}.json"
    return json.loads(path.read_text()) if path.exists() else None


SLICES = """device.driver == "gpu.portico.dev" && device.attributes["gpu.portico.dev"].deviceType == "MIG" """


def test_twenty_gibibytes_become_a_slice(page: Page, article: Demo) -> None:
    """An administrator offers slices of every size under one name; the form finds the smallest that does."""
    class_of_devices = {"metadata": {"name": "slices"}, "spec": {"selectors": [{"cel": {"expression": SLICES}}]}}
    article.call("POST", "/apis/resource.k8s.io/v1/deviceclasses", class_of_devices)
    class_of_gpus = {
        "apiVersion": "portico.dev/v1alpha1",
        "kind": "GPUClass",
        "metadata": {"name": "h100-slice"},
        "spec": {"title": "H100, a slice", "deviceClass": {"name": "slices"}, "mode": "slice"},
    }
    article.call("POST", "/apis/portico.dev/v1alpha1/gpuclasses", class_of_gpus)
    wait_until(lambda: page.goto("/request/") and gpu_class(page, "h100-slice").count(), "the class on the form")
    gpu_class(page, "h100-slice").check()
    named(page).fill("twenty-gibibytes")
    page.get_by_label(re.compile("^Memory, at")).fill("20Gi")
    expect(page.locator("#text-template")).to_contain_text("3g.40gb")
    expect(page.locator("#fit")).to_contain_text("Fits now on")
    page.get_by_role("button", name="Create the template").click()
    page.wait_for_url("**/requests/*/")
    pod = start_pod(article, page)
    in_use(page)
    (claim,) = claims_of(article, pod["metadata"]["name"])
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    # 1g.20gb and 2g.20gb of an H100 have 19.6 GiB each: the smallest with 20 is 3g.40gb.
    assert re.fullmatch(r"gpu-\d-mig-3g40gb-\d", given["device"])
    end_pod(article, pod)


def test_who_would_wait_follows_what_is_proposed(page: Page, article: Demo) -> None:
    page.goto("/request/")
    gpu_class(page, "h100").check()
    named(page).fill("not-so-many")
    page.get_by_label("Devices", exact=True).fill("8")
    fit = page.locator("#fit")
    expect(fit).to_contain_text("Will wait")
    fit.get_by_role("link", name=re.compile(r"^\d instead of 8")).click()
    expect(fit).to_contain_text("Fits now on")
    count = int(page.get_by_label("Devices", exact=True).input_value())
    assert 1 < count < 8
    expect(named(page)).to_have_value("not-so-many")
    page.get_by_role("button", name="Create the template").click()
    page.wait_for_url("**/requests/*/")
    pod = start_pod(article, page)
    in_use(page)
    (claim,) = claims_of(article, pod["metadata"]["name"])
    assert len(claim["status"]["allocation"]["devices"]["results"]) == count
    end_pod(article, pod)


def test_who_waits_nevertheless_is_told_so_until_devices_are_there(page: Page, article: Demo) -> None:
    page.goto("/request/?class=h100&count=8&name=all-eight")
    expect(page.locator("#fit")).to_contain_text("Will wait")
    page.get_by_role("button", name="Create the template").click()
    page.wait_for_url("**/requests/*/")
    pod = start_pod(article, page)
    expect(page.locator("#progress")).to_contain_text("Waiting for devices")
    page.goto("/")
    expect(page.get_by_role("region", name="Waiting")).to_contain_text(pod["metadata"]["name"])
    end_pod(article, pod)


def test_the_time_is_paused_and_goes_on_from_the_page(page: Page, article: Demo) -> None:
    page.goto("/")
    time = page.get_by_role("form", name="Time of the demo")
    expect(time.get_by_role("button", name="Pause")).to_have_attribute("aria-pressed", "true")
    time.get_by_role("button", name="×10").click()  # noqa: RUF001  # the sign on the page
    expect(time.get_by_role("button", name="×10")).to_have_attribute("aria-pressed", "true")  # noqa: RUF001
    assert article.call("GET", "/simulator/clock")["rate"] == 10
    time.get_by_role("button", name="Pause").click()
    expect(time.get_by_role("button", name="Pause")).to_have_attribute("aria-pressed", "true")
    assert article.call("GET", "/simulator/clock")["rate"] == 0
