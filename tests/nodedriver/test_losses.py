"""What a node may lose while its driver is down or works: the boot, files, instances, claims, room on the disk.

A real driver process each time; silicon, checkpoint, CDI folder and answer are compared with what is written down here
by hand.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from nodedriver.facts import PciAddress
from simulator.silicon import rules
from simulator.silicon.hardware import Gpu
from tests.nodedriver import apiserver
from tests.nodedriver.claims import DRIVER, allocated, given
from tests.nodedriver.machine import CLAIMS, short_folder, wait_until
from tests.nodedriver.node import SLICES, DriverNode

pytestmark = pytest.mark.programs

UID, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
MIG, CDI_NAME = "gpu-0-mig-3g40gb-4", f"gpu.portico.dev-claim-{UID}.json"
CARD = PciAddress("0000:1b:00.0")  # the first of the machine


@dataclass(frozen=True, slots=True)
class Seen:
    """A node in short: the first card's MIG mode and instances (profile id, start, compute instances), the checkpoint's
    entries (state, devices) by uid, and the names in the CDI folder.
    """

    mig: bool
    instances: tuple[tuple[int, int, int], ...]
    entries: tuple[tuple[str, str, str], ...]
    files: tuple[str, ...]


NOTHING = Seen(mig=False, instances=(), entries=(), files=())
PREPARED = Seen(mig=True, instances=((9, 4, 1),), entries=((UID, "completed", MIG),), files=(CDI_NAME,))
AFTER_BOOT = Seen(mig=False, instances=(), entries=((UID, "started", MIG),), files=())


def seen(bare_node: DriverNode) -> Seen:
    gpu = bare_node.state.read().gpus[0]
    claims = json.loads((bare_node.plugin_dir / "checkpoint.json").read_bytes())["claims"]
    return Seen(
        mig=gpu.mig_current,
        instances=tuple((i.profile_id, i.start, len(i.compute_instances)) for i in gpu.gpu_instances),
        entries=tuple((uid, c["state"], ",".join(d["device"] for d in c["devices"])) for uid, c in claims.items()),
        files=tuple(sorted(path.name for path in bare_node.cdi_dir.iterdir() if path.is_file())),
    )


@pytest.fixture
def bare_node() -> Iterator[DriverNode]:
    """The driver as a process, without the MPS supervisor, which nothing here needs."""
    with ExitStack() as stack:
        folder = stack.enter_context(short_folder())
        made = DriverNode(folder, stack.enter_context(apiserver.serve(folder / "kubeconfig")))
        stack.callback(made.close)
        made.start("driver")
        yield made


@pytest.fixture
def asked(bare_node: DriverNode) -> Any:
    """The claim as the kubelet calls it, prepared."""
    claim = bare_node.allocate(allocated(given(MIG, 100), uid=UID))
    assert devices(bare_node.prepare(claim)[UID]) == [MIG]
    assert seen(bare_node) == PREPARED
    return claim


def devices(answer: Any) -> list[str]:
    """The devices of an answer; the CDI name of each is made of them and the claim."""
    assert not answer.error, answer.error
    ids = [f"{DRIVER}/claim={UID}-{MIG}-gpu" for _ in answer.devices]
    assert [each for device in answer.devices for each in device.cdi_device_ids] == ids or len(ids) != 1
    return [device.device_name for device in answer.devices]


def change_card(bare_node: DriverNode, step: Callable[[Gpu], Gpu]) -> None:
    bare_node.state.change_gpu(CARD, lambda gpu: (step(gpu), None))


def without_instances(gpu: Gpu) -> Gpu:
    return replace(gpu, gpu_instances=())


@pytest.mark.parametrize("opposite", [False, True], ids=["prepare", "unprepare"])
def test_a_reboot(bare_node: DriverNode, asked: Any, *, opposite: bool) -> None:
    """Instances, MIG mode, /var/run and the boot id go; the disk stays."""
    bare_node.kill()
    change_card(bare_node, lambda gpu: replace(gpu, gpu_instances=(), mig_current=False, mig_pending=False))
    (bare_node.cdi_dir / CDI_NAME).unlink()
    (bare_node.tree.proc / "sys/kernel/random/boot_id").write_text("another\n")
    bare_node.start("driver")
    assert seen(bare_node) == AFTER_BOOT
    if not opposite:
        assert devices(bare_node.prepare(asked)[UID]) == [MIG]
        assert seen(bare_node) == PREPARED
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == NOTHING


LOST: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "empty": lambda path: path.write_bytes(b""),
    "from the future": lambda path: path.write_text(path.read_text().replace('"version": 1', '"version": 99')),
}


@pytest.mark.parametrize("how", LOST)
def test_a_checkpoint_that_is_lost(bare_node: DriverNode, asked: Any, how: str) -> None:
    """It is made anew from the CDI files; what could not be read is kept."""
    bare_node.terminate("driver")
    checkpoint = bare_node.plugin_dir / "checkpoint.json"
    LOST[how](checkpoint)
    left = checkpoint.read_bytes() if checkpoint.exists() else None
    bare_node.start("driver")
    assert seen(bare_node) == PREPARED
    assert [path.read_bytes() for path in bare_node.plugin_dir.glob("checkpoint.json.unreadable-*")] == (
        [] if left is None else [left]
    )
    assert devices(bare_node.prepare(asked)[UID]) == [MIG]
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == NOTHING


HALF = Seen(mig=True, instances=((9, 4, 1),), entries=((UID, "started", MIG),), files=())


def half_prepared(bare_node: DriverNode) -> Any:
    """A claim whose driver died when its instance was made and no CDI file written."""
    claim = bare_node.allocate(allocated(given(MIG, 100), uid=UID))
    assert devices(bare_node.prepare(claim)[UID]) == [MIG]
    bare_node.kill()
    checkpoint = bare_node.plugin_dir / "checkpoint.json"
    checkpoint.write_text(checkpoint.read_text().replace('"completed"', '"started"'))
    (bare_node.cdi_dir / CDI_NAME).unlink()
    assert seen(bare_node) == HALF
    return claim


def taints(bare_node: DriverNode, card: int) -> list[Any]:
    slices = bare_node.store.under(SLICES)
    every = [device for each in slices for device in each["spec"].get("devices", [])]
    (found,) = (device for device in every if device["name"] == f"gpu-{card}")
    return [(taint["key"], taint["effect"]) for taint in found.get("taints", [])]


def test_a_checkpoint_that_is_deleted_while_a_claim_is_half_prepared_closes_its_card(bare_node: DriverNode) -> None:
    """Nobody knows whose instance it is; once it is gone the card serves again."""
    claim = half_prepared(bare_node)
    (bare_node.plugin_dir / "checkpoint.json").unlink()
    bare_node.start("driver")
    assert (
        "the checkpoint had been deleted and the card still has 1 MIG instances" in bare_node.prepare(claim)[UID].error
    )
    assert (taints(bare_node, 0), taints(bare_node, 1)) == ([(f"{DRIVER}/unclean", "NoSchedule")], [])
    bare_node.terminate("driver")
    change_card(bare_node, without_instances)
    bare_node.start("driver")
    assert taints(bare_node, 0) == []
    assert devices(bare_node.prepare(claim)[UID]) == [MIG]
    assert seen(bare_node) == PREPARED


def test_instances_of_an_administrator_close_no_card_at_the_first_start(bare_node: DriverNode) -> None:
    bare_node.terminate("driver")
    shutil.rmtree(bare_node.plugin_dir)
    shutil.rmtree(bare_node.cdi_dir)
    change_card(bare_node, lambda gpu: replace(gpu, mig_current=True, mig_pending=True))
    change_card(bare_node, lambda gpu: rules.create_gpu_instance(gpu, 19, (0, 1))[0])
    bare_node.start("driver")
    assert taints(bare_node, 0) == []
    asked = bare_node.allocate(allocated(given(MIG, 100), uid=UID))
    assert devices(bare_node.prepare(asked)[UID]) == [MIG]
    assert seen(bare_node).instances == ((19, 0, 0), (9, 4, 1))


def test_a_cdi_file_that_is_lost_is_written_at_the_start(bare_node: DriverNode, asked: Any) -> None:
    bare_node.terminate("driver")
    (bare_node.cdi_dir / CDI_NAME).unlink()
    bare_node.start("driver")
    wait_until(lambda: seen(bare_node) == PREPARED, "the file")
    assert devices(bare_node.prepare(asked)[UID]) == [MIG]


def test_an_instance_that_is_removed_is_made_at_the_start(bare_node: DriverNode, asked: Any) -> None:
    bare_node.terminate("driver")
    change_card(bare_node, without_instances)
    bare_node.start("driver")
    wait_until(lambda: seen(bare_node) == PREPARED, "the instance")
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == NOTHING


def test_an_instance_that_is_removed_meanwhile_is_made_by_the_next_call(bare_node: DriverNode, asked: Any) -> None:
    change_card(bare_node, without_instances)
    assert devices(bare_node.prepare(asked)[UID]) == [MIG]
    assert seen(bare_node) == PREPARED
    change_card(bare_node, without_instances)
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == NOTHING


def test_an_instance_that_is_made_by_hand_is_in_nobodys_hands(bare_node: DriverNode, asked: Any) -> None:
    """It stays, keeps the card in MIG mode, and refuses what overlaps it."""
    change_card(bare_node, lambda gpu: rules.create_gpu_instance(gpu, 19, (0, 1))[0])
    overlapping = bare_node.allocate(allocated(given("gpu-0-mig-2g20gb-0", 100), name="other", uid=OTHER))
    assert (
        "Another GPU instance is in its way: nvidia-smi mig -lgi lists them."
        in bare_node.prepare(overlapping)[OTHER].error
    )
    assert seen(bare_node) == replace(PREPARED, instances=((9, 4, 1), (19, 0, 0)))
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == replace(NOTHING, mig=True, instances=((19, 0, 0),))
    whole = bare_node.allocate(allocated(given("gpu-0", 100), name="other", uid=OTHER))
    assert "can't be used whole: 1 GPU instances are on it" in bare_node.prepare(whole)[OTHER].error
    assert seen(bare_node) == replace(NOTHING, mig=True, instances=((19, 0, 0),))


def test_a_claim_that_is_deleted_with_force_and_made_again_under_its_name(bare_node: DriverNode, asked: Any) -> None:
    del bare_node.store.objects[f"{CLAIMS}/claim"]
    again = bare_node.allocate(allocated(given(MIG, 100), uid=OTHER))
    refusal = bare_node.prepare(again)[OTHER].error
    assert f"device {MIG} (100 %) can't be prepared" in refusal
    assert seen(bare_node) == PREPARED
    assert f"has uid {OTHER} now and the pod uses {UID}" in bare_node.prepare(asked)[UID].error
    assert seen(bare_node) == PREPARED
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == NOTHING
    assert [device.device_name for device in bare_node.prepare(again)[OTHER].devices] == [MIG]
    assert bare_node.unprepare(again) == {OTHER: ""}
    assert seen(bare_node) == NOTHING


@pytest.mark.parametrize("what", ["checkpoint", "CDI folder"])
def test_a_full_disk(bare_node: DriverNode, what: str) -> None:
    """/dev/full has no room for whoever asks (null(4)), root or not; taking the link away makes room again."""
    claim = bare_node.allocate(allocated(given(MIG, 100), uid=UID))
    folder, name = (bare_node.plugin_dir, "checkpoint.json") if what == "checkpoint" else (bare_node.cdi_dir, CDI_NAME)
    bare_node.cdi_dir.mkdir(exist_ok=True)
    full = folder / f".{name}.next"
    full.symlink_to("/dev/full")
    assert "No space left on device" in bare_node.prepare(claim)[UID].error
    assert seen(bare_node) == NOTHING
    full.unlink(missing_ok=True)
    assert devices(bare_node.prepare(claim)[UID]) == [MIG]
    assert seen(bare_node) == PREPARED


def test_a_full_disk_at_unprepare_is_an_error_until_there_is_room(bare_node: DriverNode, asked: Any) -> None:
    full = bare_node.plugin_dir / ".checkpoint.json.next"
    full.symlink_to("/dev/full")
    assert "No space left on device" in bare_node.unprepare(asked)[UID]
    assert seen(bare_node) == Seen(mig=False, instances=(), entries=PREPARED.entries, files=())
    full.unlink()
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == NOTHING


def test_without_the_api_server_the_driver_starts_and_gives_back_what_it_can(bare_node: DriverNode, asked: Any) -> None:
    new = bare_node.allocate(allocated(given("gpu-1", 100), name="new", uid=OTHER))
    published = bare_node.store.under(SLICES)
    assert len(published) == 9
    bare_node.store.away = True
    assert "no answer from http://127.0.0.1" in bare_node.prepare(new)[OTHER].error
    assert seen(bare_node) == PREPARED
    bare_node.kill()
    bare_node.start("driver")
    assert seen(bare_node) == PREPARED
    assert bare_node.unprepare(asked) == {UID: ""}
    assert seen(bare_node) == NOTHING
    bare_node.store.away = False
    assert [device.device_name for device in bare_node.prepare(new)[OTHER].devices] == ["gpu-1"]
    wait_until(lambda: "ResourceSlices not published yet" in bare_node.log("driver"), "the report")
    assert bare_node.store.under(SLICES) == published
