"""`make demo` as a person runs it: one command, no service, a living cluster; Ctrl-C leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from tests.browser import Looks
from tests.cluster.waiting import wait_until
from tests.journeys.embedded import ROOT, SECONDS, Demo, play, running

pytestmark = pytest.mark.programs  # starts the whole demo

PEOPLE = ("alice", "bob", "charlie", "olga", "gus")
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ml-team/resourceclaims"
PODS = "/api/v1/namespaces/ml-team/pods"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running(tmp_path_factory.mktemp("demo") / "demo.log") as made:
        yield made


@pytest.fixture
def alice(browser: Browser, demo: Demo) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True) as context:
        yield play(context.new_page(), demo, "alice")


def test_it_lives_and_needs_little(demo: Demo) -> None:
    for name in PEOPLE:
        assert re.search(rf"^ *{name} +\S+$", demo.log.read_text(), re.MULTILINE)
    claims = wait_until(lambda: demo.call("GET", "/apis/resource.k8s.io/v1/resourceclaims")["items"], "claims")
    assert any(claim.get("status", {}).get("allocation") for claim in claims)
    wait_until(lambda: demo.call("GET", f"{PODS}/training-1")["status"]["phase"] == "Running", "a training of 8 GPUs")
    programs = demo.programs()
    assert len(programs) >= 5  # driver and supervisor of two nodes, and the portal
    pids = [demo.process.pid, *(each.pid for each in programs)]
    assert sum(map(_resident, pids)) < 900 * 2**20


def _resident(pid: int) -> int:
    """Bytes of memory, shared ones counted in part (smaps_rollup, Pss)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def given(demo: Demo, pod: str) -> str:
    """Node and device of the pod's claim; empty before it runs."""
    claims = demo.call("GET", CLAIMS)["items"]
    mine = [each for each in claims if each["metadata"].get("ownerReferences", [{}])[0].get("name") == pod]
    if demo.call("GET", f"{PODS}/{pod}")["status"]["phase"] != "Running":
        return ""
    (result,) = mine[0]["status"]["allocation"]["devices"]["results"]
    return f"{result['pool']}/{result['device']}"


def test_alice_gets_a_slice_and_gives_it_back(alice: Page, demo: Demo, looks: Looks) -> None:
    def is_offered() -> bool:
        alice.goto(f"{demo.url}/request/?ns=ml-team&class=h100-mig-1g10gb")
        return alice.locator('input[type="radio"][value="h100-mig-1g10gb"]').count() == 1

    wait_until(is_offered, "the class on the form", pause=0.5)
    alice.get_by_label("Name", exact=True).fill("mine")
    expect(alice.locator("#text-template")).to_contain_text("name: mine")
    looks.at(alice, "demo-request")
    alice.locator("label.tab", has_text="Pod").click()
    with alice.expect_download() as waiting:
        alice.get_by_role("link", name="Download pod.yaml").click()
    pod = yaml.safe_load(Path(waiting.value.path()).read_bytes())
    alice.get_by_role("button", name="Create the template").click()
    alice.wait_for_url("**/requests/*/")
    demo.call("POST", PODS, pod)
    device = wait_until(lambda: given(demo, pod["metadata"]["name"]), "a device for the pod")
    expect(alice.locator("#progress")).to_contain_text(device, timeout=SECONDS)
    looks.at(alice, "demo-in-use")
    demo.call("DELETE", f"{PODS}/{pod['metadata']['name']}")
    alice.goto(f"{demo.url}/claims/")
    expect(alice.get_by_role("row").filter(has_text="mine")).to_have_count(0, timeout=SECONDS)
    looks.at(alice, "demo-claims")
    alice.goto(f"{demo.url}/capacity/")
    looks.at(alice, "demo-capacity")


def test_two_at_once_and_each_stops_without_a_trace(demo: Demo, tmp_path: Path) -> None:
    with running(tmp_path / "second.log", "--scenario", "mixed") as second:
        assert second.url != demo.url
        programs, folder = second.programs(), second.kubeconfig.parent
        with urllib.request.urlopen(f"{second.url}/readyz", timeout=10) as answer:
            assert answer.status == 200
    assert second.process.returncode == 0, second.log.read_text()
    assert [program for program in programs if program.alive()] == []
    assert not folder.exists()
    with urllib.request.urlopen(f"{demo.url}/readyz", timeout=10) as answer:
        assert answer.status == 200


def test_a_program_that_dies_ends_the_demo_with_its_last_words(tmp_path: Path) -> None:
    with running(tmp_path / "demo.log") as broken:
        victim = next(each for each in broken.programs() if b"driver" in _command(each.pid).split(b"\0"))
        os.kill(victim.pid, signal.SIGKILL)
        assert broken.process.wait(60) == 1
    assert re.search(r"could not go on: driver of node-[12] ended with -9:\n\{", broken.log.read_text())


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--scenario", "none"), "There is no scenario 'none'; there are article, mixed."),
        (("--kubeconfig", "/nowhere"), "there is no kubeconfig /nowhere"),
    ],
)
def test_what_can_not_start_says_so_in_one_line(arguments: tuple[str, ...], line: str) -> None:
    command = [sys.executable, "-m", "simulator.demo", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"portico: could not go on: {line}"]
