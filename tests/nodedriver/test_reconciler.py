"""Looks at claims whose four sides differ, on stand-in silicon: what is put right, and what is left alone."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from dra.names import ClaimRef, ClaimUID
from nodedriver.comparing import Verdict
from nodedriver.driver import Prepared
from nodedriver.facts import MigPlacement
from nodedriver.holding import ClaimState
from nodedriver.mps import MpsClient
from simulator.silicon.state import with_gpu
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import CLAIMS, Machine

pytestmark = pytest.mark.programs

A = "aaaaaaaa-0000-4000-8000-000000000000"
MIG = "gpu-0-mig-3g40gb-4"


def prepared(machine: Machine, share: int = 100) -> ClaimRef:
    ref = machine.allocate(allocated(given(MIG, share), uid=A))
    assert isinstance(machine.driver.prepare(ref), Prepared)
    return ref


def everything(machine: Machine) -> object:
    return machine.instances(), machine.modes(), machine.specs(), machine.prepared.read()


def test_what_agrees_is_left_alone(machine: Machine) -> None:
    prepared(machine)
    before, silicon = everything(machine), machine.state.read()
    assert machine.reconciler.look() == {}
    assert (everything(machine), machine.state.read()) == (before, silicon)


def test_a_lost_cdi_file_is_written_again(machine: Machine) -> None:
    prepared(machine)
    before = everything(machine)
    next(machine.cdi_dir.glob("*.json")).unlink()
    assert machine.reconciler.look() == {A: Verdict.REPAIR}
    assert everything(machine) == before


def test_a_lost_instance_is_made_again(machine: Machine) -> None:
    prepared(machine)
    before, gpu = everything(machine), machine.state.read().gpus[0]
    machine.state.change(lambda s: (with_gpu(s, replace(gpu, gpu_instances=())), None))
    assert machine.reconciler.look() == {A: Verdict.REPAIR}
    assert everything(machine) == before


def test_a_daemon_that_the_supervisor_does_not_know_is_asked_for_again(supervised: Machine) -> None:
    prepared(supervised, share=50)
    before, daemons = everything(supervised), supervised.daemons()
    assert supervised.reconciler.look() == {}
    MpsClient(supervised.plugin_dir / "mps/mpsd.sock").remove(next(iter(daemons)))
    assert supervised.daemons() == {}
    assert supervised.reconciler.look() == {A: Verdict.REPAIR}
    assert (everything(supervised), supervised.daemons()) == (before, daemons)


def test_a_lost_checkpoint_is_made_from_the_cdi_files(machine: Machine) -> None:
    prepared(machine)
    before = machine.prepared.read().claims[ClaimUID(A)]
    (machine.plugin_dir / "checkpoint.json").unlink()
    assert machine.reconciler.look() == {A: Verdict.RESTORE}
    assert machine.prepared.read().claims == {A: replace(before, prepared_at=None)}


def test_a_claim_that_went_is_taken_back_at_the_second_look(supervised: Machine) -> None:
    ref = prepared(supervised, share=50)
    del supervised.store.objects[f"{CLAIMS}/{ref.name}"]
    before = everything(supervised)
    with capture_logs() as first:
        assert supervised.reconciler.look() == {A: Verdict.TAKE_BACK}
    assert everything(supervised) == before
    with capture_logs() as second:
        supervised.reconciler.look()
    said = "resource claim put right"
    assert [[each.get("done") for each in log if each["event"] == said] for log in (first, second)] == [
        [],
        [Verdict.TAKE_BACK],
    ]
    assert (supervised.instances(), supervised.specs(), supervised.daemons()) == ([], {}, {})
    assert supervised.prepared.read().claims == {}
    assert supervised.reconciler.look() == {}


def test_a_claim_that_came_back_is_not_taken_from(machine: Machine) -> None:
    ref = prepared(machine)
    claim = machine.store.objects.pop(f"{CLAIMS}/{ref.name}")
    machine.reconciler.look()
    machine.store.objects[f"{CLAIMS}/{ref.name}"] = claim
    assert machine.reconciler.look() == {}
    del machine.store.objects[f"{CLAIMS}/{ref.name}"]
    machine.reconciler.look()
    assert machine.instances() == [(9, 4)]


@pytest.mark.parametrize("change", ["other uid", "not allocated", "another node"])
def test_a_claim_that_is_ours_no_more(machine: Machine, change: str) -> None:
    ref = prepared(machine)
    claim = machine.store.objects[f"{CLAIMS}/{ref.name}"]
    if change == "other uid":
        claim["metadata"]["uid"] = A.replace("a", "b")
    elif change == "not allocated":
        del claim["status"]["allocation"]
    else:
        claim["status"]["allocation"]["devices"]["results"][0]["pool"] = "node-2"
    machine.reconciler.look()
    machine.reconciler.look()
    assert (machine.instances(), machine.prepared.read().claims) == ([], {})


def test_without_the_api_server_only_what_is_lost_is_put_right(machine: Machine) -> None:
    ref = prepared(machine)
    before = everything(machine)
    machine.store.objects[f"{CLAIMS}/{ref.name}"] = {"kind": "Nonsense"}
    next(machine.cdi_dir.glob("*.json")).unlink()
    assert machine.reconciler.look() == {A: Verdict.REPAIR}
    assert machine.reconciler.look() == {}
    assert everything(machine) == before


def test_half_prepared_waits_for_the_kubelet_while_its_claim_is_there(machine: Machine) -> None:
    ref = prepared(machine)
    entry = machine.prepared.read().claims[ClaimUID(A)]
    machine.prepared.save(replace(entry, state=ClaimState.STARTED))
    before = everything(machine)
    assert machine.reconciler.look() == {}
    assert everything(machine) == before
    del machine.store.objects[f"{CLAIMS}/{ref.name}"]
    machine.reconciler.look()
    machine.reconciler.look()
    assert (machine.instances(), machine.specs(), machine.prepared.read().claims) == ([], {}, {})


def test_what_an_administrator_made_stays(machine: Machine) -> None:
    first = machine.gpus.facts()[0].pci_address
    machine.gpus.enter_mig(first)
    machine.gpus.create_mig(first, MigPlacement(9, 0, 4))
    ref = prepared(machine)
    del machine.store.objects[f"{CLAIMS}/{ref.name}"]
    machine.reconciler.look()
    machine.reconciler.look()
    assert machine.instances() == [(9, 0)]
