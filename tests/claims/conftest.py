"""The fleet that tests of pages look at, a cluster that is away, a simulated one, and Alice's browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.test import Client
from playwright.sync_api import Browser, Page
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from dra.kube import requests
from dra.kube.requests import NAMESPACES, Resource
from portal.models import User
from simulator.world import ROLES
from tests.claims.rows import put_fleet
from tests.cluster.controlplane import free_ports
from tests.portal_fixtures import signed_in
from tests.simulator.serving import Served, serving


@pytest.fixture
def fleet(db: None) -> None:
    """One node with two H100, three DeviceClasses."""
    put_fleet()


@pytest.fixture
def away(settings: Settings, tmp_path: Path) -> str:
    """The cluster's address is one where nobody listens."""
    (port,) = free_ports(1)
    config = tmp_path / "kubeconfig"
    config.write_text(
        f'{{"clusters":[{{"name":"c","cluster":{{"server":"http://127.0.0.1:{port}"}}}}],"users":[],'
        '"contexts":[{"name":"c","context":{"cluster":"c","user":""}}],"current-context":"c"}'
    )
    settings.KUBECONFIG = str(config)
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def simulated(settings: Settings, tmp_path: Path) -> Iterator[Served]:
    """A server with the roles of the demo."""
    with serving(tmp_path) as served:
        for namespace in ("portico-system", "ml-team", "inference-team"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            served.client.send(requests.create(NAMESPACES, json.dumps(body).encode()))
        for document in yaml.safe_load_all(ROLES.read_text()):
            group, _, version = document["apiVersion"].rpartition("/")
            plural = f"{document['kind'].lower()}s"
            resource = Resource(
                group, version, plural, document["kind"], namespaced="namespace" in document["metadata"]
            )
            namespace = document["metadata"].get("namespace", "")
            served.client.send(requests.create(resource, json.dumps(document).encode(), namespace=namespace))
        settings.KUBECONFIG = str(tmp_path / "kubeconfig")
        yield served


@pytest.fixture
def faults() -> list[str]:
    """What the browser's console says is wrong; none is left at the end."""
    return []


@pytest.fixture
def as_browser(browser: Browser, live_server: LiveServer, alice: User, faults: list[str]) -> Iterator[Page]:
    """Alice's browser, signed in."""
    context = browser.new_context(base_url=live_server.url)
    session: Client = signed_in(alice)
    context.add_cookies([{"name": "sessionid", "value": session.cookies["sessionid"].value, "url": live_server.url}])
    page = context.new_page()
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    # The browser itself reports every answer that is no success.
    assert [fault for fault in faults if "the server responded with a status of" not in fault] == []
