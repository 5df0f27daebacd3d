"""The stand-in control daemon enforces what NVIDIA's does, for real client processes over a real socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pynvml
import pytest

from simulator.silicon.hardware import ComputeMode
from tests.simulator.machines import Machine
from tests.simulator.mps import PATIENCE_SECONDS, Mps, await_true

pytestmark = pytest.mark.programs

GIB = 1024**3
NOWHERE = {"CUDA_MPS_PIPE_DIRECTORY": "/nonexistent"}


@pytest.fixture
def mps(machine: Machine) -> Iterator[Mps]:
    """A multi-user daemon on the first card."""
    with Mps(machine.tree, machine.gpu().uuid, "-M") as running:
        yield running


def held_bytes(machine: Machine) -> list[int]:
    return [p.memory_bytes for p in machine.gpu().processes if p.server_pid is not None]


class TestCommands:
    def test_defaults_are_set_and_read_back(self, mps: Mps, machine: Machine) -> None:
        assert mps.command("get_default_active_thread_percentage") == "100.0"
        assert mps.command("get_default_device_pinned_mem_limit 0") == ""
        mps.command("set_default_active_thread_percentage 25")
        mps.command("set_default_device_pinned_mem_limit 0 20G")
        assert mps.command("get_default_active_thread_percentage") == "25.0"
        assert mps.command(f"get_default_device_pinned_mem_limit {machine.gpu().uuid}") == "20G"
        mps.command(f"set_default_device_pinned_mem_limit {machine.gpu().uuid} 20260M")
        assert mps.command("get_default_device_pinned_mem_limit 0") == "20260M"

    def test_a_device_that_is_not_there_is_taken_without_a_word(self, mps: Mps, machine: Machine) -> None:
        other = machine.gpu(1).uuid
        mps.command(f"set_default_device_pinned_mem_limit {other} 1G")
        assert mps.command(f"get_default_device_pinned_mem_limit {other}") == ""

    @pytest.mark.parametrize(
        "line",
        [
            "set_default_active_thread_percentage 0",
            "set_default_active_thread_percentage 101",
            "set_default_active_thread_percentage many",
            "set_default_device_pinned_mem_limit 0 10",
            "set_default_device_pinned_mem_limit 0 1.5G",
            "get_active_thread_percentage 1",
            "make_coffee",
            "quit -t soon",
        ],
    )
    def test_nonsense_is_refused_and_changes_nothing(self, mps: Mps, line: str) -> None:
        before = mps.daemon()
        assert mps.run_command(line).returncode == 1
        assert mps.daemon() == before

    def test_start_server_takes_the_card(self, mps: Mps, machine: Machine) -> None:
        assert mps.command("get_server_list") == ""
        mps.command("start_server -uid 0")
        (server,) = mps.daemon().servers
        assert mps.command("get_server_list") == str(server.pid)
        assert mps.command(f"get_server_status {server.pid}") == "ACTIVE"
        (seen,) = pynvml.nvmlDeviceGetComputeRunningProcesses(machine.handle())
        assert seen.pid == server.pid

    def test_a_server_at_fault_takes_no_new_clients_until_the_old_ones_have_gone(
        self, mps: Mps, machine: Machine
    ) -> None:
        old = mps.holding_client("3G")
        (server,) = mps.daemon().servers
        mps.state.fail_mps_servers(machine.gpu().uuid)
        assert mps.command(f"get_server_status {server.pid}") == "FAULT"
        assert mps.client("1G")["result"] == "CUDA_ERROR_MPS_SERVER_NOT_READY"
        old.terminate()
        old.wait(PATIENCE_SECONDS)
        await_true(lambda: mps.command(f"get_server_status {server.pid}") == "ACTIVE", "the server's recovery")
        assert mps.client("1G")["status"] == 0

    def test_a_client_is_terminated_and_its_neighbour_lives_on(self, mps: Mps, machine: Machine) -> None:
        gone, stays = mps.holding_client("3G"), mps.holding_client("2G")
        (server,) = mps.daemon().servers
        mps.command(f"terminate_client {server.pid} {gone.pid}")
        assert mps.command(f"get_client_list {server.pid}") == str(stays.pid)
        assert held_bytes(machine) == [2 * GIB]
        assert gone.wait(PATIENCE_SECONDS) == 1
        again = mps.run_command(f"terminate_client {server.pid} {gone.pid}")
        assert (again.returncode, again.stdout) == (1, f"MPS server {server.pid} has no client {gone.pid}.\n")

    def test_clients_are_listed(self, mps: Mps, machine: Machine) -> None:
        client = mps.holding_client("3G")
        (server,) = mps.daemon().servers
        assert mps.command(f"get_client_list {server.pid}") == str(client.pid)
        assert mps.command("ps").splitlines()[1].split()[:3] == [str(client.pid), "1", str(server.pid)]
        (seen,) = pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(machine.handle())
        assert (seen.pid, seen.usedGpuMemory) == (client.pid, 3 * GIB)
        assert pynvml.nvmlDeviceGetMemoryInfo(machine.handle(), version=pynvml.nvmlMemory_v2).used == 3 * GIB

    def test_the_program_takes_several_commands_and_prints_what_they_answer(self, mps: Mps) -> None:
        lines = "set_default_active_thread_percentage 25\nget_default_active_thread_percentage\n\nmake_coffee\nps"
        done = mps.run_command(lines)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout == "25.0\nUnknown command 'make_coffee'.\nPID       ID    SERVER    DEVICE\n"

    def test_without_a_daemon(self, mps: Mps) -> None:
        mps.command("quit")
        mps.process.wait(PATIENCE_SECONDS)
        done = mps.run_command("get_server_list")
        assert (done.returncode, done.stderr) == (1, "Cannot find MPS control daemon process\n")


class TestLimits:
    def test_the_server_holds_a_client_to_its_defaults(self, mps: Mps) -> None:
        mps.command("set_default_active_thread_percentage 25")
        mps.command("set_default_device_pinned_mem_limit 0 20G")
        within = mps.client("20G")
        assert (within["status"], within["via"], within["active_thread_percentage"]) == (0, "mps", 25.0)
        beyond = mps.client("20481M")
        assert (beyond["status"], beyond["result"]) == (2, "CUDA_ERROR_OUT_OF_MEMORY")
        assert beyond["why"] == "21475885056 bytes asked for, limit 21474836480 bytes"

    def test_an_environment_can_tighten_but_not_loosen(self, mps: Mps) -> None:
        mps.command("set_default_active_thread_percentage 50")
        mps.command("set_default_device_pinned_mem_limit 0 20G")
        tight = mps.client("6G", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=5G", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="10")
        assert (tight["status"], tight["memory_limit_bytes"], tight["active_thread_percentage"]) == (2, 5 * GIB, 10.0)
        loose = mps.client("30G", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=40G", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="100")
        assert (loose["status"], loose["memory_limit_bytes"], loose["active_thread_percentage"]) == (2, 20 * GIB, 50.0)

    def test_an_environment_limits_where_the_server_does_not(self, mps: Mps, machine: Machine) -> None:
        answer = mps.client("6G", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=f"{machine.gpu().uuid}=5G")
        assert (answer["status"], answer["memory_limit_bytes"]) == (2, 5 * GIB)

    def test_nonsense_in_an_environment(self, mps: Mps) -> None:
        answer = mps.client("1G", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=lots")
        assert (answer["status"], answer["result"]) == (1, "CUDA_ERROR_INVALID_VALUE")

    def test_new_defaults_are_for_future_servers(self, mps: Mps) -> None:
        mps.command("start_server -uid 0")
        mps.command("set_default_device_pinned_mem_limit 0 1G")
        assert mps.client("2G")["status"] == 0
        mps.command(f"shutdown_server {mps.command('get_server_list')}")
        assert mps.client("2G")["status"] == 2

    def test_a_servers_own_limits_are_for_its_new_clients(self, mps: Mps) -> None:
        old = mps.holding_client("2G")
        server = mps.command("get_server_list")
        mps.command(f"set_device_pinned_mem_limit {server} 0 1G")
        mps.command(f"set_active_thread_percentage {server} 30")
        assert mps.command(f"get_device_pinned_mem_limit {server} 0") == "1G"
        assert mps.command(f"get_active_thread_percentage {server}") == "30.0"
        answer = mps.client("2G")
        assert (answer["status"], answer["active_thread_percentage"]) == (2, 30.0)
        assert old.poll() is None

    def test_limits_in_the_daemons_environment_are_its_defaults(self, machine: Machine) -> None:
        quarter = Mps(machine.tree, machine.gpu().uuid)
        quarter.environment |= {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=7G"}
        with quarter as mps:
            assert mps.daemon().default_active_thread_percentage == 25.0
            assert mps.daemon().default_memory_limits == {machine.gpu().uuid: 7 * GIB}

    def test_clients_cannot_have_more_than_the_card_together(self, mps: Mps) -> None:
        mps.holding_client("50G")
        answer = mps.client("40G")
        assert answer["result"] == "CUDA_ERROR_OUT_OF_MEMORY"
        # 81559 MiB less 551 MiB reserved less 50 GiB
        assert answer["why"] == f"{40 * GIB} bytes asked for, {(81559 - 551 - 51200) * 1024**2} bytes free"

    def test_a_killed_client_gives_its_memory_back(self, mps: Mps, machine: Machine) -> None:
        client = mps.holding_client("50G")
        assert held_bytes(machine) == [50 * GIB]
        client.kill()
        client.wait(PATIENCE_SECONDS)
        await_true(lambda: held_bytes(machine) == [], "the end of its context")
        assert mps.client("70G")["status"] == 0

    def test_the_49th_context_is_refused(self, mps: Mps) -> None:
        answers = []
        for _ in range(49):
            connection = mps.connect()
            connection.sendall(b'{"cuda": "connect"}\n')
            answers.append(json.loads(connection.recv(4096)))
        assert [a["result"] for a in answers[:48]] == ["CUDA_SUCCESS"] * 48
        assert answers[48]["result"] == "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"


class TestComputeMode:
    def test_who_avoids_the_daemon_is_refused_by_an_exclusive_card(self, mps: Mps, machine: Machine) -> None:
        pynvml.nvmlDeviceSetComputeMode(machine.handle(), pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
        mps.command("start_server -uid 0")
        answer = mps.client("1G", **NOWHERE)
        assert (answer["status"], answer["via"]) == (46, "direct")
        assert answer["result"] == "CUDA_ERROR_DEVICE_UNAVAILABLE"
        assert mps.client("1G")["status"] == 0

    def test_an_exclusive_card_that_is_taken_gets_no_server(self, mps: Mps, machine: Machine) -> None:
        pynvml.nvmlDeviceSetComputeMode(machine.handle(), pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
        mps.holding_client("1G", **NOWHERE)
        assert mps.run_command("start_server -uid 0").returncode == 1
        answer = mps.client("1G")
        assert (answer["status"], answer["result"]) == (1, "CUDA_ERROR_MPS_CONNECTION_FAILED")
        assert mps.daemon().servers == ()

    def test_a_default_card_lets_everyone_in(self, mps: Mps) -> None:
        mps.command("start_server -uid 0")
        assert mps.client("1G", **NOWHERE)["status"] == 0

    def test_a_prohibited_card_lets_nobody_in(self, mps: Mps, machine: Machine) -> None:
        pynvml.nvmlDeviceSetComputeMode(machine.handle(), pynvml.NVML_COMPUTEMODE_PROHIBITED)
        assert machine.gpu().compute_mode is ComputeMode.PROHIBITED
        assert mps.client("1G", **NOWHERE)["result"] == "CUDA_ERROR_DEVICE_UNAVAILABLE"
        assert mps.client("1G")["result"] == "CUDA_ERROR_MPS_CONNECTION_FAILED"

    def test_visible_devices_choose_the_card(self, mps: Mps, machine: Machine) -> None:
        for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
            answer = mps.client("1G", **NOWHERE, **{variable: machine.gpu(5).uuid})
            assert answer["device"] == machine.gpu(5).uuid
        assert mps.client("1G", **NOWHERE, CUDA_VISIBLE_DEVICES="9")["result"] == "CUDA_ERROR_NO_DEVICE"


class TestEnds:
    def test_the_state_shows_the_daemon_until_it_quits(self, mps: Mps, machine: Machine) -> None:
        (daemon,) = machine.state.read().mps_daemons
        assert (daemon.pid, daemon.devices, daemon.multi_user) == (mps.process.pid, (machine.gpu().uuid,), True)
        assert daemon.pipe_directory == str(mps.pipes)
        mps.command("start_server -uid 0")
        mps.command("quit")
        assert mps.process.wait(PATIENCE_SECONDS) == 0
        assert machine.state.read().mps_daemons == ()
        assert machine.gpu().processes == ()
        assert not (mps.pipes / "control").exists()

    def test_settings_are_lost_on_quit(self, mps: Mps) -> None:
        mps.command("set_default_active_thread_percentage 25")
        mps.command("quit")
        mps.process.wait(PATIENCE_SECONDS)
        mps.start()
        assert mps.command("get_default_active_thread_percentage") == "100.0"

    def test_sigterm_is_a_quit_without_patience(self, mps: Mps, machine: Machine) -> None:
        client = mps.holding_client("1G")
        mps.process.terminate()
        assert mps.process.wait(PATIENCE_SECONDS) == 0
        assert client.wait(PATIENCE_SECONDS) == 1
        assert machine.state.read().mps_daemons == ()

    def test_a_killed_daemon_is_gone_with_its_server_and_clients(self, mps: Mps, machine: Machine) -> None:
        client = mps.holding_client("1G")
        mps.process.kill()
        mps.process.wait(PATIENCE_SECONDS)
        assert client.wait(PATIENCE_SECONDS) == 1
        assert machine.state.read().mps_daemons == ()
        await_true(lambda: machine.gpu().processes == (), "the end of its server")
        mps.start()  # over the socket file that the killed one left
        assert mps.client("1G")["status"] == 0

    def test_a_lost_server_ends_its_clients_and_is_replaced(self, mps: Mps) -> None:
        client = mps.holding_client("1G")
        lost = int(mps.command("get_server_list"))
        os.kill(lost, signal.SIGKILL)
        assert client.wait(PATIENCE_SECONDS) == 1
        assert mps.client("1G")["server_pid"] != lost

    def test_quit_waits_for_clients(self, mps: Mps) -> None:
        client = mps.holding_client("1G")
        waiting = mps.connect()
        waiting.sendall(b'{"command": "quit"}\n')
        await_true(lambda: mps.run_command("ps").returncode == 1, "the end of new connections")
        assert mps.process.poll() is None
        client.terminate()
        assert mps.process.wait(PATIENCE_SECONDS) == 0
        assert waiting.recv(10) == b""

    def test_quit_with_a_time_does_not_wait_longer(self, mps: Mps) -> None:
        client = mps.holding_client("1G")
        mps.command("quit -t 0.2")
        assert mps.process.wait(PATIENCE_SECONDS) == 0
        assert client.wait(PATIENCE_SECONDS) == 1

    def test_a_pipe_directory_has_one_daemon(self, mps: Mps, machine: Machine) -> None:
        second = subprocess.run(
            [machine.tree.driver / "usr/bin/nvidia-cuda-mps-control", "-f"],
            env=mps.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert (second.returncode, len(machine.state.read().mps_daemons)) == (1, 1)
        assert f"serves {mps.pipes} already" in second.stderr

    def test_a_pipe_directory_that_is_too_long(self, mps: Mps, machine: Machine) -> None:
        long = mps.environment | {"CUDA_MPS_PIPE_DIRECTORY": str(mps.pipes / ("x" * 100))}
        control = machine.tree.driver / "usr/bin/nvidia-cuda-mps-control"
        done = subprocess.run([control, "-f"], env=long, capture_output=True, text=True, check=False, timeout=20)
        assert (done.returncode, done.stderr.strip()) == (1, "AF_UNIX path too long")

    def test_garbage_ends_its_connection_only(self, mps: Mps) -> None:
        for garbage in (b"hello\n", b'{"cuda": "dance"}\n', b'{"cuda": "alloc", "bytes": "x"}\n'):
            connection = mps.connect()
            connection.sendall(garbage)
            assert connection.recv(10) == b""
        assert mps.command("get_server_list") == ""


def test_in_the_background_it_is_ready_when_the_call_returns(machine: Machine, mps: Mps) -> None:
    mps.command("quit")
    mps.process.wait(PATIENCE_SECONDS)
    control = str(machine.tree.driver / "usr/bin/nvidia-cuda-mps-control")
    subprocess.run([control, "-d", "-multiuser-server"], env=mps.environment, check=True, timeout=PATIENCE_SECONDS)
    (daemon,) = machine.state.read().mps_daemons
    assert (daemon.multi_user, len(daemon.devices)) == (True, 8)
    mps.command("quit")
    await_true(lambda: machine.state.read().mps_daemons == (), "the end of the daemon")


class TestMig:
    @pytest.fixture
    def mig_uuid(self, machine: Machine) -> str:
        """A 3g.40gb instance of the first card."""
        pynvml.nvmlDeviceSetMigMode(machine.handle(), 1)
        compute = pynvml.nvmlGpuInstanceCreateComputeInstance(machine.create(9, 4, 4), 2)
        uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlComputeInstanceGetInfo(compute).device)
        assert isinstance(uuid, str)
        return uuid

    def test_a_daemon_serves_a_mig_device(self, machine: Machine, mig_uuid: str) -> None:
        with Mps(machine.tree, mig_uuid, "-M") as mps:
            assert mps.client("40448M")["status"] == 0
            assert mps.client("40449M")["result"] == "CUDA_ERROR_OUT_OF_MEMORY"
            client = mps.holding_client("1G")
            device = pynvml.nvmlDeviceGetHandleByUUID(mig_uuid)
            (seen,) = pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(device)
            assert (seen.pid, seen.gpuInstanceId, seen.computeInstanceId) == (client.pid, 2, 0)
            gpu_instance = pynvml.nvmlDeviceGetGpuInstanceById(machine.handle(), 2)
            compute = pynvml.nvmlGpuInstanceGetComputeInstanceById(gpu_instance, 0)
            with pytest.raises(pynvml.NVMLError, check=lambda e: e.value == pynvml.NVML_ERROR_IN_USE):
                pynvml.nvmlComputeInstanceDestroy(compute)

    def test_clients_are_fewer_in_proportion(self, machine: Machine, mig_uuid: str) -> None:
        with Mps(machine.tree, mig_uuid, "-M") as mps:
            results = []
            for _ in range(21):  # 48 x 3/7 = 20.6
                connection = mps.connect()
                connection.sendall(b'{"cuda": "connect"}\n')
                results.append(json.loads(connection.recv(4096))["code"])
        assert results == [0] * 20 + [808]

    @pytest.mark.usefixtures("mig_uuid")
    def test_a_card_in_mig_mode_is_no_device_itself(self, machine: Machine) -> None:
        with Mps(machine.tree, machine.gpu().uuid) as mps:
            assert mps.client("1G")["result"] == "CUDA_ERROR_MPS_CONNECTION_FAILED"
            assert mps.client("1G", **NOWHERE)["result"] == "CUDA_ERROR_NO_DEVICE"
