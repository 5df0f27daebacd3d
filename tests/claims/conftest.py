"""The fleet that tests of pages look at, a cluster that is away, and Alice's browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from portal.models import User
from tests.claims.rows import put_fleet
from tests.cluster.controlplane import free_ports
from tests.portal_fixtures import signed_in


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
