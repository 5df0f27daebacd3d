"""Prepare and unprepare on stand-in silicon: hardware, checkpoint and CDI files after each verb, and after none."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from dra.names import ClaimRef, ClaimUID
from dra.objects import ObjectMeta, ResourceClaim
from nodedriver.driver import Failed, Prepared
from nodedriver.facts import MigPlacement
from simulator.silicon.hardware import Injection
from simulator.silicon.state import with_gpu
from tests.nodedriver.claims import allocated, given, given_slots, gpu_config, mps, of_claim, of_class, time_slicing
from tests.nodedriver.machine import CLAIMS, Machine, wait_until, without_counters

pytestmark = pytest.mark.programs

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
C = "cccccccc-0000-4000-8000-000000000000"
MIG = "gpu-0-mig-3g40gb-4"
CREATE, CREATE_COMPUTE = "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance"


def names(result: Prepared | Failed) -> list[str]:
    assert isinstance(result, Prepared), result
    return [device.device for device in result.devices]


def error(result: Prepared | Failed) -> str:
    assert isinstance(result, Failed), result
    return result.error


def environment(machine: Machine, uid: str, index: int = 0) -> list[str]:
    env: list[str] = machine.specs()[uid]["devices"][index]["containerEdits"].get("env", [])
    return env


def nodes(machine: Machine, uid: str, index: int = 0) -> list[str]:
    return [node["path"] for node in machine.specs()[uid]["devices"][index]["containerEdits"]["deviceNodes"]]


def test_a_whole_card_needs_a_file_and_nothing_else(machine: Machine) -> None:
    ref = machine.allocate(allocated(given("gpu-0", 100), uid=A))
    before = machine.state.read()
    result = machine.driver.prepare(ref)
    assert isinstance(result, Prepared)
    assert result.devices[0].cdi_device_ids == (f"gpu.portico.dev/claim={A}-gpu-0-gpu",)
    assert nodes(machine, A) == ["/dev/nvidia0"]
    assert environment(machine, A) == []
    assert machine.state.read() == before
    assert machine.driver.unprepare(ref) == ""
    assert machine.specs() == {}
    assert machine.prepared.read().claims == {}


def test_a_mig_instance_exists_while_its_claim_is_prepared(machine: Machine) -> None:
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    assert names(machine.driver.prepare(ref)) == [MIG]
    assert machine.instances() == [(9, 4)]
    assert machine.modes() == (True, "DEFAULT")
    first, *capabilities = nodes(machine, A)
    assert first == "/dev/nvidia0"
    assert len(capabilities) == 2
    assert machine.driver.unprepare(ref) == ""
    assert machine.instances() == []
    assert machine.modes() == (False, "DEFAULT")


def test_prepare_repeats_the_same_answer_and_repairs_the_file(machine: Machine) -> None:
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    first, files, checkpoint = machine.driver.prepare(ref), machine.specs(), machine.prepared.read()
    for path in machine.cdi_dir.iterdir():
        path.unlink()
    assert machine.driver.prepare(ref) == first
    assert machine.specs() == files
    assert machine.prepared.read() == checkpoint


def test_prepare_remakes_an_instance_that_went_away(machine: Machine) -> None:
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    first = machine.driver.prepare(ref)
    gpu = machine.state.read().gpus[0]
    machine.state.change(lambda s: (with_gpu(s, replace(gpu, gpu_instances=(), mig_current=False)), None))
    assert machine.driver.prepare(ref) == first
    assert machine.instances() == [(9, 4)]
    held = machine.prepared.read().claims[ClaimUID(A)].devices[0]
    assert held.uuid == machine.state.read().gpus[0].gpu_instances[0].compute_instances[0].uuid


def test_an_instance_made_by_hand_is_used_and_stays(machine: Machine) -> None:
    machine.gpus.enter_mig(machine.gpus.facts()[0].pci_address)
    machine.gpus.create_mig(machine.gpus.facts()[0].pci_address, MigPlacement(9, 4, 4))
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    names(machine.driver.prepare(ref))
    assert machine.driver.unprepare(ref) == ""
    assert machine.instances() == [(9, 4)]


def test_a_share_gets_a_daemon_limits_and_exclusive_mode(supervised: Machine) -> None:
    ref = supervised.allocate(allocated(given("gpu-0", 25), config=(of_class(mps(25)),), uid=A))
    names(supervised.driver.prepare(ref))
    uuid = supervised.state.read().gpus[0].uuid
    assert supervised.daemons() == {uuid: (25.0, [20261])}
    assert supervised.modes() == (False, "EXCLUSIVE_PROCESS")
    assert environment(supervised, A) == [
        "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20261M",
    ]
    assert supervised.driver.unprepare(ref) == ""
    assert supervised.daemons() == {}
    assert supervised.modes() == (False, "DEFAULT")


def test_the_daemon_comes_with_the_first_share_and_goes_with_the_last(supervised: Machine) -> None:
    quarter = supervised.allocate(allocated(given("gpu-0", 25), name="a", uid=A))
    half = supervised.allocate(allocated(given("gpu-0", 50), name="b", uid=B))
    uuid = supervised.state.read().gpus[0].uuid
    names(supervised.driver.prepare(quarter))
    names(supervised.driver.prepare(half))
    assert supervised.daemons() == {uuid: (50.0, [40523])}
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25" in environment(supervised, A)
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50" in environment(supervised, B)
    assert supervised.driver.unprepare(half) == ""
    assert supervised.daemons() == {uuid: (25.0, [20261])}
    assert supervised.modes() == (False, "EXCLUSIVE_PROCESS")
    assert supervised.driver.unprepare(quarter) == ""
    assert supervised.daemons() == {}
    assert supervised.modes() == (False, "DEFAULT")


def test_shares_of_a_mig_instance(supervised: Machine) -> None:
    one = supervised.allocate(allocated(given(MIG, 50), name="a", uid=A))
    two = supervised.allocate(allocated(given(MIG, 50), name="b", uid=B))
    names(supervised.driver.prepare(one))
    names(supervised.driver.prepare(two))
    uuid = supervised.state.read().gpus[0].gpu_instances[0].compute_instances[0].uuid
    assert supervised.daemons() == {uuid: (50.0, [19968])}
    assert supervised.modes() == (True, "DEFAULT")
    assert supervised.driver.unprepare(one) == ""
    assert supervised.instances() == [(9, 4)]
    assert supervised.driver.unprepare(two) == ""
    assert (supervised.instances(), supervised.daemons()) == ([], {})


def test_claims_take_turns_on_a_time_sliced_card(machine: Machine) -> None:
    many = machine.allocate(allocated(given_slots("gpu-0-timesliced", 9), name="a", uid=A))
    one = machine.allocate(allocated(given_slots("gpu-0-timesliced", 1), name="b", uid=B))
    before = machine.state.read()
    names(machine.driver.prepare(many))
    assert names(machine.driver.prepare(one)) == ["gpu-0-timesliced"]
    assert (nodes(machine, B), environment(machine, B)) == (["/dev/nvidia0"], [])
    assert machine.state.read() == before
    third = machine.allocate(allocated(given_slots("gpu-0-timesliced", 1), name="c", uid=C))
    assert (
        "(1 of 10 slots) can't be prepared: with what other claims hold (9 of 10 slots, 1 of 10 slots) its shares "
        "would be 110 % of it"
    ) in error(machine.driver.prepare(third))
    whole = machine.allocate(allocated(given("gpu-0", 100), name="d", uid=C))
    assert "it overlaps gpu-0-timesliced, which another resource claim holds" in error(machine.driver.prepare(whole))
    assert machine.driver.unprepare(many) == machine.driver.unprepare(one) == ""
    assert machine.specs() == {}


@pytest.mark.parametrize(
    "claim",
    [
        allocated(given("gpu-0", 100), config=(of_claim(time_slicing("Long")),), uid=A),
        allocated(given_slots("gpu-0-timesliced", 10), config=(of_claim(time_slicing("Long")),), uid=A),
    ],
    ids=["exclusive", "every slot"],
)
def test_the_time_slice_is_the_claims_while_it_has_the_card_alone(machine: Machine, claim: ResourceClaim) -> None:
    ref = machine.allocate(claim)
    names(machine.driver.prepare(ref))
    assert [gpu.timeslice for gpu in machine.state.read().gpus[:2]] == [3, 0]
    assert machine.driver.unprepare(ref) == ""
    assert machine.state.read().gpus[0].timeslice == 0


def test_without_nvidia_smi_a_time_slice_is_refused_and_nothing_else_is(machine: Machine) -> None:
    (machine.tree.driver / "usr/bin/nvidia-smi").unlink()
    ref = machine.allocate(allocated(given("gpu-0", 100), config=(of_claim(time_slicing("Long")),), uid=A))
    assert "its time slice can't be set to Long, since nvidia-smi is not below the driver root" in error(
        machine.driver.prepare(ref)
    )
    plain = machine.allocate(allocated(given("gpu-1", 100), name="b", uid=B))
    assert names(machine.driver.prepare(plain)) == ["gpu-1"]


def test_neighbours_statuses_are_written_anew_when_a_share_comes_or_goes(supervised: Machine) -> None:
    one = supervised.allocate(allocated(given("gpu-0", 25), name="a", uid=A))
    two = supervised.allocate(allocated(given("gpu-0", 50), name="b", uid=B))
    supervised.driver.prepare(one)
    supervised.wished.clear()
    supervised.driver.prepare(two)
    assert set(supervised.wished) == {A, B}
    supervised.wished.clear()
    supervised.driver.unprepare(two)
    assert supervised.wished == [A]


def test_a_missing_supervisor_fails_the_claim_and_leaves_nothing_behind(machine: Machine) -> None:
    ref = machine.allocate(allocated(given(MIG, 50), uid=A))
    before = without_counters(machine.state.read().gpus[0])
    message = error(machine.driver.prepare(ref))
    assert "the MPS supervisor did not answer" in message
    # Undoing asks the supervisor too, so the entry stays for the kubelet's next call.
    assert "undoing the steps before it failed too" in message
    assert machine.prepared.read().claims[ClaimUID(A)].state == "started"
    machine.start_supervisor()
    assert machine.driver.unprepare(ref) == ""
    assert without_counters(machine.state.read().gpus[0]) == before
    assert machine.prepared.read().claims == {}


FAILING = {"no instance": CREATE, "no compute instance": CREATE_COMPUTE}


@pytest.mark.parametrize("function", FAILING.values(), ids=FAILING)
def test_a_failing_step_is_undone_and_the_next_call_succeeds(machine: Machine, function: str) -> None:
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    machine.state.inject(Injection(function=function, code=999))
    assert f"{function} answered" in error(machine.driver.prepare(ref))
    assert (machine.instances(), machine.modes(), machine.specs()) == ([], (False, "DEFAULT"), {})
    assert machine.prepared.read().claims == {}
    assert names(machine.driver.prepare(ref)) == [MIG]


def test_a_full_disk_is_the_claims_error(machine: Machine) -> None:
    machine.cdi_dir.rmdir()
    machine.cdi_dir.write_text("not a folder")
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    assert "Not a directory" in error(machine.driver.prepare(ref))
    machine.cdi_dir.unlink()
    machine.cdi_dir.mkdir()
    assert names(machine.driver.prepare(ref)) == [MIG]


def test_a_device_that_another_claim_holds_is_refused(machine: Machine) -> None:
    one = machine.allocate(allocated(given("gpu-0", 100), name="a", uid=A))
    names(machine.driver.prepare(one))
    two = machine.allocate(allocated(given(MIG, 100), name="b", uid=B))
    message = error(machine.driver.prepare(two))
    assert f"device {MIG} (100 %) can't be prepared: it overlaps gpu-0, which another resource claim holds" in message
    assert machine.instances() == []
    assert set(machine.prepared.read().claims) == {A}


def test_admin_access_sees_a_held_card_and_changes_nothing(machine: Machine) -> None:
    holder = machine.allocate(allocated(given("gpu-0", 100), name="a", uid=A))
    names(machine.driver.prepare(holder))
    before = machine.state.read()
    admin = machine.allocate(allocated(given("gpu-0", admin=True), name="b", uid=B))
    assert names(machine.driver.prepare(admin)) == ["gpu-0"]
    assert machine.state.read() == before
    assert machine.driver.unprepare(admin) == ""
    assert machine.state.read() == before
    assert set(machine.specs()) == {A}


def test_admin_access_makes_no_instance(machine: Machine) -> None:
    admin = machine.allocate(allocated(given(MIG, admin=True), uid=A))
    assert f"{MIG} does not exist at the moment, and admin access makes no MIG instance" in error(
        machine.driver.prepare(admin)
    )
    assert machine.instances() == []


def test_unprepare_of_an_unknown_claim_is_done(machine: Machine) -> None:
    assert machine.driver.unprepare(ClaimRef("ml-team", "never", ClaimUID(A))) == ""


def test_unprepare_needs_no_api_server(machine: Machine) -> None:
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    names(machine.driver.prepare(ref))
    machine.store.objects.clear()
    asked = len(machine.store.requests)
    assert machine.driver.unprepare(ref) == ""
    assert (machine.instances(), len(machine.store.requests)) == ([], asked)


REFUSED: dict[str, tuple[ResourceClaim, str]] = {
    "bad config": (
        allocated(given("gpu-0", 25), config=(of_claim(gpu_config({"strategy": "Mps"})),), uid=A),
        "sharing.strategy: 'Mps' is not allowed",
    ),
    "not allocated": (
        ResourceClaim(metadata=ObjectMeta(name="claim", namespace="ml-team", uid=A)),
        "resource claim ml-team/claim is not allocated (any more)",
    ),
    "another uid": (allocated(given("gpu-0", 100), uid=B), f"has uid {B} now and the pod uses {A}"),
}


@pytest.mark.parametrize(("claim", "sentence"), REFUSED.values(), ids=REFUSED)
def test_refuses(machine: Machine, claim: ResourceClaim, sentence: str) -> None:
    machine.allocate(claim)
    assert sentence in error(machine.driver.prepare(ClaimRef("ml-team", "claim", ClaimUID(A))))
    assert machine.prepared.read().claims == {}


def test_a_claim_that_is_gone_is_the_servers_own_sentence(machine: Machine) -> None:
    assert error(machine.driver.prepare(ClaimRef("ml-team", "gone", ClaimUID(A)))) == '"gone" not found'


def test_mig_mode_is_kept_by_policy_until_a_whole_card_is_prepared(machine: Machine) -> None:
    driver = machine.make_driver(keep_mig_mode=True)
    part = machine.allocate(allocated(given(MIG, 100), uid=A))
    names(driver.prepare(part))
    assert driver.unprepare(part) == ""
    assert (machine.instances(), machine.modes()) == ([], (True, "DEFAULT"))
    whole = machine.allocate(allocated(given("gpu-0", 100), name="whole", uid=B))
    names(driver.prepare(whole))
    assert machine.modes() == (False, "DEFAULT")


def test_after_a_reboot_prepare_does_all_of_it_again(machine: Machine) -> None:
    ref = machine.allocate(allocated(given(MIG, 100), uid=A))
    first = machine.driver.prepare(ref)
    gpu = machine.state.read().gpus[0]
    machine.state.change(lambda s: (with_gpu(s, replace(gpu, gpu_instances=(), mig_current=False)), None))
    (machine.tree.proc / "sys/kernel/random/boot_id").write_text("another\n")
    for path in machine.cdi_dir.iterdir():
        path.unlink()
    assert machine.make_driver().prepare(ref) == first
    assert (machine.instances(), set(machine.specs())) == ([(9, 4)], {A})


def break_checkpoint(machine: Machine) -> bytes:
    checkpoint = machine.plugin_dir / "checkpoint.json"
    broken = checkpoint.read_bytes()[:-40]
    checkpoint.write_bytes(broken)
    return broken


def test_an_unreadable_checkpoint_is_made_anew_from_the_cdi_files(supervised: Machine) -> None:
    ref = supervised.allocate(allocated(given(MIG, 50), uid=A))
    answer = supervised.driver.prepare(ref)
    before = supervised.prepared.read().claims[ClaimUID(A)]
    broken = break_checkpoint(supervised)
    driver = supervised.make_driver()
    assert supervised.opened.aside is not None
    assert supervised.opened.aside.path.read_bytes() == broken
    assert supervised.prepared.read().claims == {A: replace(before, prepared_at=None)}
    assert supervised.prepared.read().unclean == {}
    assert driver.prepare(ref) == answer
    assert driver.unprepare(ref) == ""
    assert (supervised.instances(), supervised.daemons()) == ([], {})


def test_an_unreadable_checkpoint_without_files_keeps_its_cards_from_new_claims(supervised: Machine) -> None:
    ref = supervised.allocate(allocated(given(MIG, 50), uid=A))
    names(supervised.driver.prepare(ref))
    broken = break_checkpoint(supervised)
    for path in supervised.cdi_dir.iterdir():
        path.unlink()
    driver = supervised.make_driver()
    assert supervised.opened.aside is not None
    assert supervised.opened.aside.path.read_bytes() == broken
    new = supervised.allocate(allocated(given("gpu-0-mig-1g10gb-0", 100), name="b", uid=B))
    kept, message = supervised.opened.aside.path.name, error(driver.prepare(new))
    assert f"it is kept as {kept}) and the card still has 1 MIG instances, 1 MPS daemons" in message
    other = supervised.allocate(allocated(given("gpu-1", 100), name="c", uid=B.replace("b", "c")))
    assert names(driver.prepare(other)) == ["gpu-1"]
    assert driver.unprepare(ref) == ""
    assert supervised.instances() == [(9, 4)]


def test_a_claim_of_two_kinds_is_all_or_nothing(supervised: Machine) -> None:
    claim = allocated(given("gpu-1", 25, request="share"), given(MIG, 100, request="part"), uid=A)
    ref = supervised.allocate(claim)
    supervised.state.inject(Injection(function=CREATE, code=999))
    assert "answered" in error(supervised.driver.prepare(ref))
    assert (supervised.daemons(), supervised.modes(1), supervised.instances()) == ({}, (False, "DEFAULT"), [])
    assert names(supervised.driver.prepare(ref)) == ["gpu-1", MIG]
    assert supervised.driver.unprepare(ref) == ""
    assert (supervised.daemons(), supervised.modes(1), supervised.instances()) == ({}, (False, "DEFAULT"), [])


def test_no_lock_is_held_while_a_claim_is_fetched(machine: Machine) -> None:
    """While the API server is slow for one claim, another claim of the same card is served."""
    slow = machine.allocate(allocated(given(MIG, 100), name="slow", uid=A))
    quick = machine.allocate(allocated(given("gpu-0-mig-3g40gb-0", 100), name="quick", uid=B))
    release = machine.store.slow[f"{CLAIMS}/slow"] = threading.Event()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(machine.driver.prepare, slow)
        wait_until(lambda: ("GET", f"{CLAIMS}/slow") in machine.store.requests, "the fetch of the slow claim")
        assert names(machine.driver.prepare(quick)) == ["gpu-0-mig-3g40gb-0"]
        assert not waiting.done()
        release.set()
        assert names(waiting.result(10)) == [MIG]
