"""Fixtures of the node driver's tests: a stand-in machine, with and without an MPS supervisor."""

from collections.abc import Iterator

import pytest

from tests.nodedriver import apiserver
from tests.nodedriver.machine import Machine, short_folder
from tests.nodedriver.node import DriverNode


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Eight H100 and the driver's verbs in this process; no MPS supervisor."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = Machine(folder, store)
        yield made
        made.close()


@pytest.fixture
def supervised(request: pytest.FixtureRequest, machine: Machine) -> Machine:
    """The same, with the MPS supervisor as a process; a parameter is the protocol of its daemons."""
    machine.start_supervisor(getattr(request, "param", 2))
    return machine


@pytest.fixture
def scenario() -> str:
    """The cards of a driver's node."""
    return "h100x8"


@pytest.fixture
def driver_node(scenario: str) -> Iterator[DriverNode]:
    """The driver and the MPS supervisor as processes, beside a small API server."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = DriverNode(folder, store, scenario)
        try:
            made.start("mpsd")
            made.start("driver")
            yield made
        finally:
            made.close()
