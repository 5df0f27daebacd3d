"""The fleet that tests of pages look at, and a cluster that is away."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from gpuinventory.selectors import held
from tests.claims.rows import put_fleet
from tests.cluster.controlplane import free_ports


@pytest.fixture(autouse=True)
def _no_fleet_of_another_test() -> None:
    """Tests come to the same revision with other rows."""
    held.forget()


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
