"""Fixtures of the node driver's tests: a stand-in machine, with and without an MPS supervisor."""

from collections.abc import Iterator

import pytest

from tests.nodedriver import apiserver
from tests.nodedriver.machine import Machine, short_folder


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Eight H100 and the driver's verbs in this process; no MPS supervisor."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = Machine(folder, store)
        yield made
        made.close()


@pytest.fixture
def supervised(machine: Machine) -> Machine:
    """The same, with the MPS supervisor as a process."""
    machine.start_supervisor()
    return machine
