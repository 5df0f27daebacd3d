"""The MPS supervisor as a real process, with stand-in control daemons and clients that meet its limits."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nodedriver.mps import MpsAnswer, MpsClient
from nodedriver.mpsd.classic import ClassicControl
from nodedriver.mpsd.control import Doors, find_control_program
from nodedriver.ports import MpsDaemonSpec, MpsError, MpsShare
from simulator.silicon.hardware import ComputeMode, MpsDaemon
from tests.nodedriver.mps import GIB, QUARTER, B, MpsBench, enforced, eventually, held_to, put_in_place, quarter

pytestmark = pytest.mark.programs

by_both_protocols = pytest.mark.parametrize("bench", [2, 3], indirect=True)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[MpsBench]:
    # pytest's own folders are too deep for a Unix socket below them.
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        made = MpsBench(Path(folder), getattr(request, "param", 2))
        yield made
        made.stop()


def test_a_daemon_serves_its_device_with_its_limits(bench: MpsBench) -> None:
    bench.start()
    status = bench.client.ensure(quarter(bench.device))
    (daemon,) = bench.daemons()
    assert (status.device, status.thread_percentage, status.memory_limit) == (bench.device, 25.0, 20 * GIB)
    assert status.pipe_directory == daemon.pipe_directory
    assert len(f"{status.pipe_directory}/control_privileged") < 107
    assert (daemon.devices, daemon.multi_user) == ((bench.device,), True)
    assert (daemon.default_active_thread_percentage, daemon.default_memory_limits) == (25.0, {bench.device: 20 * GIB})
    assert bench.client.list() == (status,)


@by_both_protocols
def test_clients_are_held_to_the_limits_and_listed(bench: MpsBench) -> None:
    bench.start()
    pipe = bench.client.ensure(quarter(bench.device)).pipe_of(QUARTER.name)
    with bench.cuda("20G", CUDA_MPS_PIPE_DIRECTORY=pipe) as fits, bench.cuda("21G", CUDA_MPS_PIPE_DIRECTORY=pipe) as no:
        assert (fits["via"], fits["result"], fits["device"]) == ("mps", "CUDA_SUCCESS", bench.device)
        assert no["result"] == "CUDA_ERROR_OUT_OF_MEMORY"
        (status,) = bench.client.list()
        assert fits["pid"] in status.clients


@by_both_protocols
def test_an_exclusive_card_is_closed_to_others_before_the_first_client_comes(bench: MpsBench) -> None:
    bench.start()
    exclusive = replace(bench.state.read().gpus[0], compute_mode=ComputeMode.EXCLUSIVE_PROCESS)
    bench.state.change_gpu(exclusive.pci_address, lambda _: (exclusive, None))
    bench.client.ensure(quarter(bench.device))

    with bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY="/nowhere", CUDA_VISIBLE_DEVICES=bench.device) as outsider:
        assert (outsider["via"], outsider["result"]) == ("direct", "CUDA_ERROR_DEVICE_UNAVAILABLE")


@by_both_protocols
def test_ensure_again_changes_nothing(bench: MpsBench) -> None:
    bench.start()
    first = bench.client.ensure(quarter(bench.device))
    (before,) = bench.daemons()
    assert bench.client.ensure(quarter(bench.device)) == first
    assert bench.daemons() == (before,)


def test_a_share_that_changes_no_limit_needs_no_word_with_the_daemon(bench: MpsBench) -> None:
    """NVIDIA's program, which each word takes, is a process of its own."""
    bench.start()
    before = bench.client.ensure(quarter(bench.device))
    program = find_control_program(bench.tree.driver).path
    words, real = bench.tree.root / "words", program.with_suffix(".real")
    words.touch()
    shutil.copy2(program, real)
    put_in_place(program, f'#!/bin/sh\ntee -a {words} | {real} "$@"\n')  # the keeper looks at this moment
    smaller = MpsShare(claim=B, name="claim-b", limits=replace(QUARTER.limits, thread_percentage=10))
    assert bench.client.ensure(replace(quarter(bench.device), shares=(QUARTER, smaller))) == before
    assert "set_" not in words.read_text()
    bench.client.ensure(replace(quarter(bench.device), thread_percentage=30))
    assert "set_default_active_thread_percentage 30" in words.read_text()


def test_new_limits_reach_a_server_that_runs(bench: MpsBench) -> None:
    """A server takes the defaults at its start; a larger share that comes later must not be held to the smaller one."""
    bench.start()
    pipe = bench.client.ensure(quarter(bench.device)).pipe_of(QUARTER.name)
    with bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=pipe):
        bench.client.ensure(MpsDaemonSpec(device=bench.device, thread_percentage=50, memory_limit=40 * GIB))
        with bench.cuda("39G", CUDA_MPS_PIPE_DIRECTORY=pipe) as later:
            assert (later["result"], later["active_thread_percentage"]) == ("CUDA_SUCCESS", 50.0)


def test_limits_can_be_lifted(bench: MpsBench) -> None:
    bench.start()
    bench.client.ensure(quarter(bench.device))
    status = bench.client.ensure(MpsDaemonSpec(device=bench.device))
    assert (status.thread_percentage, status.memory_limit) == (100.0, None)


@by_both_protocols
def test_each_device_has_a_daemon_of_its_own(bench: MpsBench) -> None:
    bench.start()
    one = bench.client.ensure(quarter(bench.device))
    other = bench.client.ensure(quarter(bench.other_device))
    assert one.pipe_directory != other.pipe_directory
    assert sorted(d.devices for d in bench.daemons()) == sorted([(bench.device,), (bench.other_device,)])
    bench.client.remove(bench.device)
    assert [d.devices for d in bench.daemons()] == [(bench.other_device,)]


@by_both_protocols
def test_remove_leaves_nothing_and_may_be_repeated(bench: MpsBench) -> None:
    bench.start()
    pipe = Path(bench.client.ensure(quarter(bench.device)).pipe_directory)
    bench.client.remove(bench.device)
    assert bench.daemons() == ()
    assert not pipe.parent.exists()
    bench.client.remove(bench.device)
    assert bench.client.list() == ()


def test_a_limit_that_the_daemon_did_not_take_is_noticed(bench: MpsBench) -> None:
    """A daemon takes the name of a device that it does not serve without a word."""
    bench.start()
    pipe = Path(bench.client.ensure(quarter(bench.device)).pipe_directory)
    control = ClassicControl(find_control_program(bench.tree.driver), Doors(pipe, None), bench.other_device)
    with pytest.raises(
        MpsError, match=r"asked for 25.0 % and a memory limit of 20480 MiB, it says 25.0 % and no memory"
    ):
        control.apply(quarter(bench.other_device))


@by_both_protocols
def test_a_daemon_has_a_dev_shm_of_its_own(bench: MpsBench) -> None:
    bench.start()
    status = bench.client.ensure(quarter(bench.device))
    (daemon,) = bench.daemons()
    assert status.shared_memory
    (Path(status.shared_memory) / "probe").write_text("seen")
    assert Path("/proc", str(daemon.pid), "root", "dev/shm/probe").read_text() == "seen"
    assert not Path("/dev/shm/probe").exists()


def test_a_driver_root_without_the_program_is_named(bench: MpsBench) -> None:
    (bench.tree.driver / "usr/bin/nvidia-cuda-mps-control").unlink()
    supervisor = bench.launch()
    assert supervisor.wait(30) == 1
    assert f"nvidia-cuda-mps-control is not below the driver root {bench.tree.driver}" in bench.log.read_text()


def test_on_a_node_without_a_card_of_nvidia_it_is_idle(bench: MpsBench) -> None:
    (bench.tree.driver / "usr/bin/nvidia-cuda-mps-control").unlink()
    for vendor in (bench.tree.sys / "bus/pci/devices").glob("*/vendor"):
        vendor.write_text("0x1002\n")
    bench.start()
    assert bench.client.list() == ()
    with pytest.raises(MpsError, match="nvidia-cuda-mps-control"):
        bench.client.ensure(quarter(bench.device))


def test_a_second_supervisor_goes_away(bench: MpsBench) -> None:
    bench.start()
    assert bench.launch().wait(30) == 1
    assert "another MPS supervisor holds" in bench.log.read_text()
    assert bench.answers()


def enforced_again(daemons: tuple[MpsDaemon, ...]) -> tuple[float | None, int | None] | None:
    """None until a server has a share's limits."""
    try:
        return enforced(daemons[0])
    except (ValueError, IndexError):
        return None


@by_both_protocols
def test_a_daemon_that_dies_comes_back_with_its_limits(bench: MpsBench) -> None:
    bench.start()
    bench.client.ensure(quarter(bench.device))
    (before,) = bench.daemons()
    os.kill(before.pid, signal.SIGKILL)
    eventually(lambda: any(d.pid != before.pid for d in bench.daemons()), "another daemon runs")
    eventually(lambda: enforced_again(bench.daemons()) == (25.0, 20 * GIB), "its limits are back")
    (status,) = bench.client.list()
    assert held_to(status) == (25.0, 20 * GIB)


@by_both_protocols
def test_a_killed_supervisor_leaves_clients_alone_and_the_next_takes_over(bench: MpsBench) -> None:
    supervisor = bench.start()
    pipe = bench.client.ensure(quarter(bench.device)).pipe_of(QUARTER.name)
    (before,) = bench.daemons()
    with bench.cuda("10G", CUDA_MPS_PIPE_DIRECTORY=pipe) as client:
        supervisor.kill()
        supervisor.wait()
        bench.start()
        (status,) = bench.client.list()
        assert [d.pid for d in bench.daemons()] == [before.pid]
        assert status.clients == (client["pid"],)
    bench.client.remove(bench.device)
    assert bench.daemons() == ()


@by_both_protocols
def test_a_daemon_that_died_meanwhile_is_started_anew(bench: MpsBench) -> None:
    supervisor = bench.start()
    bench.client.ensure(quarter(bench.device))
    (before,) = bench.daemons()
    supervisor.kill()
    supervisor.wait()
    os.kill(before.pid, signal.SIGKILL)
    bench.start()
    (status,) = bench.client.list()
    assert held_to(status) == (25.0, 20 * GIB)
    assert bench.daemons()[0].pid != before.pid


def test_a_recorded_pid_that_is_someone_else_by_now_is_left_alone(bench: MpsBench) -> None:
    supervisor = bench.start()
    bench.client.ensure(quarter(bench.device))
    (before,) = bench.daemons()
    supervisor.kill()
    supervisor.wait()
    os.kill(before.pid, signal.SIGKILL)
    (record,) = bench.mps_dir.glob("*/daemon.json")
    other = record.read_text().replace(f'"pid":{before.pid}', f'"pid":{os.getpid()}')
    assert other != record.read_text()
    record.write_text(other)
    bench.start()
    bench.client.remove(bench.device)
    assert bench.daemons() == ()


def test_records_of_another_boot_are_cleared(bench: MpsBench) -> None:
    supervisor = bench.start()
    bench.client.ensure(quarter(bench.device))
    supervisor.terminate()
    supervisor.wait()
    (record,) = bench.mps_dir.glob("*/daemon.json")
    content = msgspec.json.decode(record.read_bytes())
    record.write_bytes(msgspec.json.encode(content | {"boot_id": "another"}))
    bench.start()
    assert bench.client.list() == ()
    assert not record.parent.exists()


@by_both_protocols
def test_sigterm_stops_the_daemons_and_the_next_supervisor_brings_them_back(bench: MpsBench) -> None:
    supervisor = bench.start()
    bench.client.ensure(quarter(bench.device))
    supervisor.terminate()
    assert supervisor.wait(30) == 0
    assert bench.daemons() == ()
    bench.start()
    (status,) = bench.client.list()
    assert (status.device, held_to(status)) == (bench.device, (25.0, 20 * GIB))


def test_nonsense_is_answered_and_harms_nobody(bench: MpsBench) -> None:
    bench.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(bench.mps_dir / "mpsd.sock"))
        connection.sendall(b'{"type":"dance"}\n')
        assert msgspec.json.decode(connection.makefile("rb").readline(), type=MpsAnswer).error
    assert bench.client.list() == ()


def test_a_supervisor_that_is_away_is_named(bench: MpsBench) -> None:
    client = MpsClient(bench.mps_dir / "mpsd.sock", timeout=1)
    with pytest.raises(MpsError, match=r"did not answer at .*/mps/mpsd\.sock: .*See whether it runs"):
        client.list()


def test_a_supervisor_that_hangs_is_given_up(bench: MpsBench) -> None:
    bench.mps_dir.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(bench.mps_dir / "mpsd.sock"))
        silent.listen()
        with pytest.raises(MpsError, match="timed out"):
            MpsClient(bench.mps_dir / "mpsd.sock", timeout=0.2).list()
