"""Cards for virtual machines: the driver's verbs on silicon whose sysfs answers to bind and unbind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra.names import ClaimUID
from dra.objects import JsonObject
from nodedriver.facts import PciAddress
from nodedriver.holding import ClaimState
from nodedriver.ports import GpuError
from nodedriver.vfio.writing import SysfsWriter
from simulator.silicon import pci, sysfs
from simulator.silicon.hardware import Gpu
from tests.nodedriver import apiserver
from tests.nodedriver.claims import DRIVER, allocated, given, of_claim, of_class
from tests.nodedriver.machine import Machine, short_folder

UID = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
GROUP_NODE = {"path": "/dev/vfio/0", "type": "c", "major": 241, "minor": 0, "permissions": "rw"}
GROUP_API = {"path": "/dev/vfio/vfio", "type": "c", "major": 10, "minor": 196, "permissions": "rw"}
DEVICE_NODE = {"path": "/dev/vfio/devices/vfio0", "type": "c", "major": 511, "minor": 0, "permissions": "rw"}
DEVICE_API = {"path": "/dev/iommu", "type": "c", "major": 10, "minor": 122, "permissions": "rw"}


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Eight H100 that can be passed through."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = Machine(folder, store)
        pci.load_vfio(made.tree.sys)
        made.driver = made.make_driver()
        yield made
        made.close()


def card(machine: Machine, number: int = 0) -> Gpu:
    return machine.state.read().gpus[number]


def vfio_config(**iommu: object) -> JsonObject:
    return {"apiVersion": f"resource.{DRIVER}/v1alpha1", "kind": "VfioDeviceConfig", "iommu": iommu}


def prepare(machine: Machine, *configs: Any, device: str = "gpu-0-vfio", uid: str = UID) -> Any:
    return machine.driver.prepare(machine.allocate(allocated(given(device), config=configs, name=uid[:4], uid=uid)))


def unprepare(machine: Machine, uid: str = UID) -> str:
    return machine.driver.unprepare(allocated(given("gpu-0-vfio"), name=uid[:4], uid=uid).ref)


def nodes(machine: Machine, uid: str = UID) -> list[dict[str, Any]]:
    (device,) = machine.specs()[uid]["devices"]
    found: list[dict[str, Any]] = device["containerEdits"]["deviceNodes"]
    return found


def override(machine: Machine, address: str) -> str:
    return pci.override_of(machine.tree.sys, address)


def test_the_card_changes_its_driver_and_comes_back_as_it_was(machine: Machine) -> None:
    before = card(machine)
    assert before.persistence
    assert prepare(machine).devices[0].device == "gpu-0-vfio"
    assert card(machine).driver == "vfio-pci"
    assert [gpu.pci_address for gpu in machine.gpus.facts()] == [g.pci_address for g in machine.state.read().gpus[1:]]
    assert unprepare(machine) == ""
    assert card(machine) == before
    assert override(machine, before.pci_address) == ""
    assert len(machine.gpus.facts()) == 8
    assert machine.specs() == {}


def test_a_container_gets_the_group_and_nothing_of_the_vendor(machine: Machine) -> None:
    prepare(machine)
    spec = machine.specs()[UID]
    assert nodes(machine) == [GROUP_NODE]
    edits = spec["containerEdits"]
    assert "NVIDIA_VISIBLE_DEVICES=void" in edits["env"]
    assert (edits["deviceNodes"], edits["mounts"]) == ([], [])


@pytest.mark.parametrize(
    ("iommu", "expected"),
    [
        ({"backendPolicy": "LegacyOnly", "enableAPIDevice": True}, [GROUP_NODE, GROUP_API]),
        ({"backendPolicy": "PreferIommuFD"}, [DEVICE_NODE]),
        ({"backendPolicy": "PreferIommuFD", "enableAPIDevice": True}, [DEVICE_NODE, DEVICE_API]),
        ({"enableAPIDevice": False}, [GROUP_NODE]),
    ],
    ids=str,
)
def test_nodes_by_configuration(machine: Machine, iommu: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    prepare(machine, of_claim(vfio_config(**iommu)))
    assert nodes(machine) == expected


def test_without_iommufd_in_the_kernel_the_group_serves(machine: Machine) -> None:
    (machine.tree.sys / "class/misc/iommu/dev").unlink()
    (machine.tree.sys / "class/misc/iommu").rmdir()
    prepare(machine, of_claim(vfio_config(backendPolicy="PreferIommuFD", enableAPIDevice=True)))
    assert nodes(machine) == [GROUP_NODE, GROUP_API]


@pytest.mark.parametrize(
    ("configs", "error"),
    [
        (
            (of_claim(vfio_config(backendPolicy="Legacy")),),
            (
                "VfioDeviceConfig of the ResourceClaim: iommu.backendPolicy: 'Legacy' is not allowed; use "
                "LegacyOnly or PreferIommuFD"
            ),
        ),
        (
            (of_claim(vfio_config(enableAPIDevice="yes")),),
            "VfioDeviceConfig of the ResourceClaim: iommu.enableAPIDevice: 'yes' is not true or false",
        ),
        (
            (of_claim(vfio_config(apiDevice=True)),),
            (
                "VfioDeviceConfig of the ResourceClaim: iommu.apiDevice is not a known field; allowed here: "
                "backendPolicy, enableAPIDevice"
            ),
        ),
        (
            (of_claim(vfio_config() | {"kind": "GpuConfig", "iommu": {}}),),
            "GpuConfig of the ResourceClaim: iommu is not a known field; allowed here: apiVersion, kind, sharing",
        ),
        (
            (of_class({**vfio_config(), "kind": "MigDeviceConfig", "iommu": {}} | {}),),
            "MigDeviceConfig of the DeviceClass: iommu is not a known field; allowed here: apiVersion, kind, sharing",
        ),
        (
            (
                of_class(vfio_config(backendPolicy="LegacyOnly")),
                of_claim(vfio_config(backendPolicy="PreferIommuFD")),
            ),
            (
                "iommu.backendPolicy: the DeviceClass sets LegacyOnly and the ResourceClaim PreferIommuFD; the class "
                "binds, so leave the claim's out or make it the same"
            ),
        ),
    ],
    ids=["policy", "not a bool", "unknown field", "another kind", "another kind in the class", "against the class"],
)
def test_a_wrong_configuration_is_an_error_and_touches_nothing(
    machine: Machine, configs: tuple[Any, ...], error: str
) -> None:
    before = machine.state.read().gpus
    assert prepare(machine, *configs).error == error
    assert (machine.state.read().gpus, machine.specs()) == (before, {})


def test_the_kind_for_virtual_machines_goes_with_no_other_device(machine: Machine) -> None:
    assert prepare(machine, of_claim(vfio_config()), device="gpu-0").error == (
        "VfioDeviceConfig of the ResourceClaim: kind: 'VfioDeviceConfig' does not go with gpu-0, a device of type "
        "Physical or TimeSliced: use GpuConfig"
    )


def test_the_companion_moves_with_the_card_and_goes_back_to_the_kernel(machine: Machine) -> None:
    audio = card(machine).pci_address[:-1] + "1"
    files = {"class": "0x040300", "vendor": "0x10de", "driver_override": "(null)"}
    pci.add_function(machine.tree.sys, card(machine), audio, files, "snd_hda_intel")
    assert not hasattr(prepare(machine), "error")
    assert pci.driver_of(machine.tree.sys, audio) == "vfio-pci"
    assert unprepare(machine) == ""
    # The stand-in's kernel knows a driver for cards only, so that nothing claims the function again.
    assert (pci.driver_of(machine.tree.sys, audio), override(machine, audio)) == ("", "")


@pytest.mark.parametrize("again", ["prepare", "unprepare"])
@pytest.mark.parametrize(
    "files", [("driver_override",), ("driver_override", "unbind"), ("driver_override", "unbind", "bind")], ids=len
)
def test_what_a_dead_call_left_between_is_put_right(machine: Machine, files: tuple[str, ...], again: str) -> None:
    """The card has its override, or no driver, or is bound and its companion is not."""
    before = card(machine)
    audio = before.pci_address[:-1] + "1"
    functions = {"class": "0x040300", "vendor": "0x10de", "driver_override": "(null)"}
    pci.add_function(machine.tree.sys, before, audio, functions, "snd_hda_intel")
    prepare(machine)
    started = replace(machine.prepared.read().claims[ClaimUID(UID)], state=ClaimState.STARTED)
    assert unprepare(machine) == ""
    machine.prepared.save(started)
    leave_between(machine, before.pci_address, files)
    if again == "prepare":
        assert not hasattr(prepare(machine), "error")
        assert [pci.driver_of(machine.tree.sys, each) for each in (before.pci_address, audio)] == ["vfio-pci"] * 2
    assert unprepare(machine) == ""
    assert card(machine) == before
    assert [override(machine, each) for each in (before.pci_address, audio)] == ["", ""]


def leave_between(machine: Machine, address: str, files: tuple[str, ...]) -> None:
    """Do the first writes of binding, as a call that died after them."""
    bus = machine.tree.sys / "bus/pci"
    writes = {
        "driver_override": (bus / "devices" / address / "driver_override", "vfio-pci"),
        "unbind": (bus / "drivers/nvidia/unbind", address),
        "bind": (bus / "drivers/vfio-pci/bind", address),
    }
    machine.gpus.set_persistence(PciAddress(address), on=False)
    with machine.gpus.let_go():
        SysfsWriter().write(PciAddress(address), [writes[file] for file in files])
        sysfs.settle(machine.tree)


def test_both_verbs_may_be_repeated(machine: Machine) -> None:
    first = prepare(machine)
    claims = machine.prepared.read().claims
    assert prepare(machine) == first
    assert machine.prepared.read().claims == claims
    assert unprepare(machine) == unprepare(machine) == ""
    assert card(machine).driver == "nvidia"


def test_a_card_that_lost_its_binding_is_bound_again(machine: Machine) -> None:
    prepare(machine)
    pci.unbind(machine.tree.sys, card(machine).pci_address)
    assert not hasattr(prepare(machine), "error")
    assert (card(machine).driver, pci.driver_of(machine.tree.sys, card(machine).pci_address)) == ("vfio-pci",) * 2


def test_a_card_in_mig_mode_leaves_it_first(machine: Machine) -> None:
    machine.gpus.enter_mig(PciAddress(card(machine).pci_address))
    assert card(machine).mig_current
    assert not hasattr(prepare(machine), "error")
    assert card(machine).driver == "vfio-pci"


def test_a_card_with_sriov_functions_is_refused_with_their_number(machine: Machine) -> None:
    address = card(machine).pci_address
    (machine.tree.sys / "bus/pci/devices" / address / "sriov_numvfs").write_text("4\n")
    assert prepare(machine).error == (
        f"GPU {address} can't be passed through: it has 4 SR-IOV functions (sriov_numvfs), which virtual machines may "
        "use: remove them first"
    )
    assert card(machine).driver == "nvidia"


def test_a_card_whose_driver_sysfs_does_not_tell_is_left_alone(machine: Machine) -> None:
    before = card(machine)
    uevent = machine.tree.sys / "bus/pci/devices" / before.pci_address / "uevent"
    kept = uevent.rename(f"{uevent}.kept")
    assert prepare(machine).error.startswith(
        f"GPU {before.pci_address} can't be passed through: sysfs does not tell its driver now; see dmesg"
    )
    kept.rename(uevent)
    assert (card(machine), override(machine, before.pci_address)) == (before, "")


@pytest.fixture
def agent(machine: Machine) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the first card open, as a monitoring agent does."""
    descriptor = os.open(machine.tree.gpu_node(card(machine).minor), os.O_RDONLY)
    hold = subprocess.Popen(["sleep", "600"], pass_fds=[descriptor])
    os.close(descriptor)
    yield hold
    hold.kill()
    hold.wait()


def test_who_holds_the_card_is_named_and_the_card_left_as_it_was(
    machine: Machine, agent: subprocess.Popen[bytes]
) -> None:
    before = card(machine)
    error = prepare(machine).error
    assert f"sleep ({agent.pid}) still has it open (/dev/nvidia{before.minor})" in error
    assert card(machine) == before
    assert machine.prepared.read().claims == {}


def test_a_card_that_a_virtual_machine_has_is_not_taken_from_it(machine: Machine) -> None:
    prepare(machine)
    descriptor = os.open(machine.tree.dev / "vfio" / "0", os.O_RDONLY)
    child = subprocess.Popen(["sleep", "600"], pass_fds=[descriptor])
    os.close(descriptor)
    try:
        error = unprepare(machine)
        assert f"sleep ({child.pid}) still has it open" in error
        assert card(machine).driver == "vfio-pci"
    finally:
        child.kill()
        child.wait()
    assert unprepare(machine) == ""
    assert card(machine).driver == "nvidia"


def test_a_card_that_an_administrator_bound_stays_bound(machine: Machine) -> None:
    leave_between(machine, card(machine).pci_address, ("driver_override", "unbind", "bind"))
    assert card(machine).driver == "vfio-pci"
    machine.driver = machine.make_driver()
    assert prepare(machine, device="gpu-0").error.startswith("device node-1/gpu-0 is not a device of this node")
    assert not hasattr(prepare(machine), "error")
    assert unprepare(machine) == ""
    assert card(machine).driver == "vfio-pci"


def test_a_restarted_driver_knows_the_card_that_a_machine_has(machine: Machine) -> None:
    prepare(machine)
    machine.driver = machine.make_driver()
    assert prepare(machine, device="gpu-0", uid=OTHER).error == (
        "device gpu-0 (100 %) can't be prepared: it overlaps gpu-0-vfio, which another resource claim holds until "
        "it is unprepared"
    )
    assert unprepare(machine) == ""
    assert not hasattr(prepare(machine, device="gpu-0", uid=OTHER), "error")


def test_what_was_kept_of_the_cards_may_be_broken(machine: Machine) -> None:
    """Then the model and the memory follow from PCI ids."""
    prepare(machine)
    (machine.plugin_dir / "cards.json").write_text("{")
    machine.driver = machine.make_driver()
    assert unprepare(machine) == ""
    assert card(machine).driver == "nvidia"
    kept = json.loads((machine.plugin_dir / "cards.json").read_text())
    assert len(kept) == 7


def test_the_health_of_a_card_that_a_machine_has_is_not_looked_at(machine: Machine) -> None:
    gpu = PciAddress(card(machine).pci_address)
    assert machine.gpus.look(gpu) is not None
    prepare(machine)
    assert machine.gpus.look(gpu) is None
    assert machine.gpus.events([gpu]).unmonitored == ()
    unprepare(machine)
    assert machine.gpus.look(gpu) is not None


def test_errors_are_heard_again_once_the_card_is_back(machine: Machine) -> None:
    gpu = PciAddress(card(machine).pci_address)
    events = machine.gpus.events([gpu])
    prepare(machine)
    assert events.wait(1) is None
    unprepare(machine)
    assert events.wait(1) is None
    machine.state.happen(gpu, xid=79)
    heard = events.wait(10_000)
    assert heard is not None
    assert (heard.gpu, heard.xid) == (gpu, 79)


class TestHangingKernel:
    """Unbinding that never comes back: the writer is a child with a deadline."""

    def test_the_driver_answers_and_goes_on_when_the_kernel_does(self, machine: Machine, tmp_path: Path) -> None:
        sysfs.hang(machine.tree)
        writer = SysfsWriter(seconds=1)
        unbind = machine.tree.sys / "bus/pci/drivers/nvidia/unbind"
        gpu = PciAddress(card(machine).pci_address)
        with pytest.raises(
            GpuError, match=f"GPU {gpu}: the kernel did not finish writing {gpu} to unbind within 1.0 s"
        ):
            writer.write(gpu, [(unbind, gpu)])
        writer._stuck[gpu].wait(60)
        sysfs.relent(machine.tree)
        assert not hasattr(prepare(machine), "error")
        assert unprepare(machine) == ""

    def test_the_verbs_answer_and_work_again_when_the_kernel_does(self, machine: Machine) -> None:
        sysfs.hang(machine.tree)
        assert "the kernel did not finish writing" in prepare(machine).error
        sysfs.relent(machine.tree)
        assert not hasattr(prepare(machine), "error")
        assert unprepare(machine) == ""
        assert card(machine).driver == "nvidia"

    def test_nothing_is_written_about_a_card_whose_writer_still_waits(self, machine: Machine, tmp_path: Path) -> None:
        writer, gpu = SysfsWriter(), PciAddress(card(machine).pci_address)
        waiting = subprocess.Popen(["sleep", "600"], text=True)
        writer._stuck[gpu] = waiting
        file = tmp_path / "driver_override"
        file.touch()
        try:
            with pytest.raises(GpuError, match=f"process {waiting.pid}, which writes to sysfs, still waits"):
                writer.write(gpu, [(file, "vfio-pci")])
            assert file.read_text() == ""
        finally:
            waiting.kill()
            waiting.wait()
        writer.write(gpu, [(file, "vfio-pci")])
        assert file.read_text() == "vfio-pci\n"

    def test_a_refusal_of_the_kernel_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(GpuError, match=r"the kernel refused to write x to .*/bind: No such file or directory"):
            SysfsWriter().write(PciAddress("0000:18:00.0"), [(tmp_path / "nowhere" / "bind", "x")])
