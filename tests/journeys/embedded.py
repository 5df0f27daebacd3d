"""`make demo` as a program for tests: started, used as a person or as the cluster's administrator, and ended."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page, expect

from tests.cluster.processes import ProcessId
from tests.cluster.waiting import wait_until

ROOT = Path(__file__).parents[2]
READY = re.compile(r"ready: (http://127\.0\.0\.1:\d+)")
SECONDS = 30_000.0


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that runs."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        found = READY.search(self.log.read_text())
        assert found, self.log.read_text()
        return found[1]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, beside the one for kubectl that is told."""
        told = Path(re.findall(r"--kubeconfig ([^;\s]+)", self.log.read_text())[0])
        return told.with_name("admin.kubeconfig")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A request of the cluster's administrator."""
        config = json.loads(self.kubeconfig.read_text())
        headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        url = config["clusters"][0]["cluster"]["server"] + path
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=10) as answer:
            return json.loads(answer.read())

    def programs(self) -> list[ProcessId]:
        """Its children and theirs."""
        return _below(self.process.pid)


def _below(pid: int) -> list[ProcessId]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    own = [found for child in children if (found := ProcessId.of(child))]
    return own + [each for child in children for each in _below(child)]


@contextmanager
def running(log: Path, *arguments: str) -> Iterator[Demo]:
    """The demo, in an environment that has no program but Python's own."""
    environment = {"PATH": "", "HOME": str(log.parent), "PYTHONPATH": str(ROOT)}
    with log.open("wb") as output:
        command = [sys.executable, "-m", "simulator.demo", *arguments]
        process = subprocess.Popen(command, cwd=log.parent, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: READY.search(log.read_text()) or process.poll() is not None, "the demo's address", 120)
        yield Demo(process, log)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def play(page: Page, demo: Demo, username: str) -> Page:
    """Home, as that person of the demo."""
    page.set_default_timeout(SECONDS)
    page.goto(f"{demo.url}/")
    page.locator(".me summary").click()
    page.get_by_role("button", name=username).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(username)
    return page


def stand_still(demo: Demo) -> Demo:
    """Once what its people have from the beginning runs, nobody makes or ends anything any more."""
    wait_until(lambda: _phases(demo) == {"Running"}, "the first pods", 60)
    demo.call("PUT", "/simulator/clock", {"rate": 0})
    return demo


def _phases(demo: Demo) -> set[str]:
    """Of all pods but those that the scenarios let wait."""
    items = demo.call("GET", "/api/v1/pods")["items"]
    pods = {pod["metadata"]["name"]: pod["status"].get("phase", "") for pod in items}
    return {phase for name, phase in pods.items() if not name.startswith(("sweep-", "whole-node-", "too-large-"))}


def start_pod(demo: Demo, page: Page, **spec: Any) -> dict[str, Any]:
    """The pod that the page shows, applied as its reader would, with that added to its spec."""
    page.locator("label.tab", has_text="Pod").click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name=re.compile("^Download (workload|pod).yaml")).click()
    pod: dict[str, Any] = yaml.safe_load(Path(waiting.value.path()).read_bytes())
    pod["spec"] |= spec
    return dict(demo.call("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod))


def end_pod(demo: Demo, pod: dict[str, Any]) -> None:
    """Delete it, and wait until its devices are given back."""
    meta = pod["metadata"]
    demo.call("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")
    wait_until(lambda: not claims_of(demo, meta["name"]), "its claims to go")


def claims_of(demo: Demo, pod: str) -> list[dict[str, Any]]:
    """The resource claims that were made for that pod."""
    items = demo.call("GET", "/apis/resource.k8s.io/v1/resourceclaims")["items"]
    return [item for item in items if item["metadata"].get("ownerReferences", [{}])[0].get("name") == pod]
