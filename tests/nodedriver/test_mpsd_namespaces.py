"""The MPS supervisor by protocol 3: the server holds each share to its own limits; and which protocol a daemon has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nodedriver.mpsd.namespaces import LONGEST_SOCKET, SERVER, namespace_of
from nodedriver.ports import MpsDaemonSpec, MpsError, MpsShare, MpsState
from tests.nodedriver.machine import short_folder
from tests.nodedriver.mps import GIB, HALF, QUARTER, A, B, MpsBench, eventually, offer_namespaces, quarter

pytestmark = pytest.mark.programs


@pytest.fixture
def bench() -> Iterator[MpsBench]:
    with short_folder() as folder:
        made = MpsBench(folder, protocol=3)
        yield made
        made.stop()


@pytest.fixture
def old_bench() -> Iterator[MpsBench]:
    """A machine whose driver does not offer protocol 3, and a supervisor that is told to speak it."""
    with short_folder() as folder:
        made = MpsBench(folder)
        made.protocol = 3
        yield made
        made.stop()


def spec(device: str, *shares: MpsShare) -> MpsDaemonSpec:
    """As the driver asks, with the largest limits as defaults."""
    largest = HALF if HALF in shares else QUARTER
    return replace(
        quarter(device),
        thread_percentage=largest.limits.thread_percentage,
        memory_limit=largest.limits.memory_limit,
        shares=shares,
    )


def namespaces(bench: MpsBench) -> dict[str, tuple[float | None, int | None]]:
    """The namespaces of the one server beside its default one, with their limits."""
    (daemon,) = bench.daemons()
    (server,) = daemon.servers
    return {n.name: (n.active_thread_percentage, n.memory_limit) for n in server.namespaces if n.name != "default"}


def test_shares_of_different_size_are_held_each_to_its_own_limits_without_any_environment(bench: MpsBench) -> None:
    bench.start()
    status = bench.client.ensure(spec(bench.device, QUARTER, HALF))
    small, large = status.pipe_of(QUARTER.name), status.pipe_of(HALF.name)
    assert len({small, large, status.pipe_directory}) == 3
    assert {share.name: (share.thread_percentage, share.memory_limit) for share in status.shares} == {
        QUARTER.name: (25.0, 20 * GIB),
        HALF.name: (50.0, 40 * GIB),
    }
    with (
        bench.cuda("20G", CUDA_MPS_PIPE_DIRECTORY=small) as fits,
        bench.cuda("40G", CUDA_MPS_PIPE_DIRECTORY=large) as f,
    ):
        assert (fits["result"], fits["active_thread_percentage"]) == ("CUDA_SUCCESS", 25.0)
        assert (f["result"], f["active_thread_percentage"]) == ("CUDA_SUCCESS", 50.0)
    with (
        bench.cuda("21G", CUDA_MPS_PIPE_DIRECTORY=small) as over,
        bench.cuda("41G", CUDA_MPS_PIPE_DIRECTORY=large) as o,
    ):
        assert [over["result"], o["result"]] == ["CUDA_ERROR_OUT_OF_MEMORY"] * 2


def test_a_share_comes_and_goes_beside_a_client_of_another(bench: MpsBench) -> None:
    bench.start()
    pipe = bench.client.ensure(spec(bench.device, QUARTER)).pipe_of(QUARTER.name)
    with bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=pipe) as client:
        bench.client.ensure(spec(bench.device, QUARTER, HALF))
        status = bench.client.ensure(spec(bench.device, QUARTER))
        assert (status.pipe_of(QUARTER.name), [share.name for share in status.shares]) == (pipe, [QUARTER.name])
        assert bench.client.list()[0].clients == (client["pid"],)
    assert namespaces(bench) == {namespace_of(QUARTER.name): (25.0, 20 * GIB)}


def test_limits_are_changed_and_lifted(bench: MpsBench) -> None:
    bench.start()
    bench.client.ensure(spec(bench.device, QUARTER))
    larger = replace(QUARTER, limits=replace(QUARTER.limits, thread_percentage=None, memory_limit=None))
    (share,) = bench.client.ensure(spec(bench.device, larger)).shares
    assert (share.thread_percentage, share.memory_limit) == (100.0, None)


def test_the_clients_of_a_claim_are_those_of_its_namespaces(bench: MpsBench) -> None:
    """Whatever their environment: a client can't leave the namespace that its container was given."""
    bench.start()
    status = bench.client.ensure(spec(bench.device, QUARTER, HALF))
    with (
        bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=status.pipe_of(QUARTER.name)),
        bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=status.pipe_of(HALF.name)) as of_b,
    ):
        bench.client.end_clients(bench.device, A)
        assert bench.client.list()[0].clients == (of_b["pid"],)
        bench.client.ensure(spec(bench.device, HALF))
        assert bench.client.list()[0].clients == (of_b["pid"],)
    assert set(namespaces(bench)) == {namespace_of(HALF.name)}


def test_a_namespace_that_no_claim_needs_goes_with_the_clients_that_are_left_in_it(bench: MpsBench) -> None:
    bench.start()
    status = bench.client.ensure(spec(bench.device, QUARTER, HALF))
    with bench.cuda("1G", CUDA_MPS_PIPE_DIRECTORY=status.pipe_of(QUARTER.name)):
        bench.client.ensure(spec(bench.device, HALF))
        assert bench.client.list()[0].clients == ()
    assert not Path(status.pipe_of(QUARTER.name)).exists()


def test_limits_that_somebody_changed_are_set_again(bench: MpsBench) -> None:
    bench.start()
    bench.client.ensure(spec(bench.device, QUARTER))
    (daemon,) = bench.daemons()
    mine = namespace_of(QUARTER.name)
    bench.control(daemon, "namespace", "set", mine, f"--server={SERVER}", "--active-thread-percentage=90")
    bench.control(daemon, "namespace", "create", "foreign", f"--server={SERVER}")
    eventually(lambda: namespaces(bench) == {mine: (25.0, 20 * GIB)}, "they are as asked for")


def test_a_driver_that_names_no_shares_is_served_by_protocol_2(bench: MpsBench) -> None:
    bench.start()
    status = bench.client.ensure(replace(quarter(bench.device), shares=()))
    assert (status.memory_limit, status.shares, bench.daemons()[0].protocol) == (20 * GIB, (), 2)


def test_a_daemon_by_protocol_3_refuses_a_driver_that_names_no_shares(bench: MpsBench) -> None:
    bench.start()
    bench.client.ensure(spec(bench.device, QUARTER))
    with pytest.raises(MpsError, match="was asked for no shares, as older drivers do: update the node driver"):
        bench.client.ensure(replace(quarter(bench.device), shares=()))
    assert set(namespaces(bench)) == {namespace_of(QUARTER.name)}


def test_a_program_that_does_not_offer_it_serves_by_protocol_2_and_it_is_said(old_bench: MpsBench) -> None:
    old_bench.start()
    status = old_bench.client.ensure(spec(old_bench.device, QUARTER, HALF))
    assert (status.memory_limit, status.shares, old_bench.daemons()[0].protocol) == (40 * GIB, (), 2)
    (report,) = old_bench.client.watch(0, 30).daemons
    assert (report.state, report.protocol) == (MpsState.READY, 2)
    assert "nvidia-cuda-mps-control does not offer MPS protocol 3" in report.reason
    assert "MPS daemons do not speak as asked for" in old_bench.log.read_text()


def test_a_program_that_does_not_tell_serves_by_protocol_2_and_it_is_said(old_bench: MpsBench) -> None:
    program = old_bench.tree.driver / "usr/bin/nvidia-cuda-mps-control"
    head, _, rest = program.read_text().partition("\n")
    program.write_text(f'{head}\ncase "$*" in *-h) exec sleep 600;; esac\n{rest}')
    old_bench.start()
    old_bench.client.ensure(spec(old_bench.device, QUARTER))
    assert old_bench.daemons()[0].protocol == 2
    assert "whether it offers MPS protocol 3 is not known, since Command" in reason(old_bench)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_a_daemon_keeps_its_protocol_while_claims_hold_it(bench: MpsBench, before: int, after: int) -> None:
    """Their containers have its pipe directories, also when it has to be started again."""
    bench.protocol = before
    supervisor = bench.start()
    bench.client.ensure(spec(bench.device, QUARTER))
    supervisor.kill()
    supervisor.wait()
    bench.protocol = after
    supervisor = bench.start()
    status = bench.client.ensure(spec(bench.device, QUARTER, HALF))
    assert (bench.daemons()[0].protocol, bool(status.shares)) == (before, before == 3)
    remark = f"keeps it until no claim needs this daemon; new daemons speak protocol {after}"
    assert remark in reason(bench)
    assert remark in bench.log.read_text()
    supervisor.terminate()
    supervisor.wait()
    bench.start()
    assert bench.daemons()[0].protocol == before
    bench.client.remove(bench.device)
    bench.client.ensure(spec(bench.device, QUARTER, HALF))
    assert (bench.daemons()[0].protocol, reason(bench)) == (after, "")


def reason(bench: MpsBench) -> str:
    (report,) = bench.client.watch(0, 30).daemons
    assert report.state is MpsState.READY
    return report.reason


def test_too_long_a_path_for_the_sockets_of_namespaces_is_named(bench: MpsBench) -> None:
    """The sockets of namespaces lie deeper than those of protocol 2."""
    free = 107 - len(f"{bench.plugin_dir}/mps/12345678/pipe/{LONGEST_SOCKET}")
    bench.plugin_dir = bench.plugin_dir / ("x" * free)
    assert bench.launch().wait(30) == 1
    assert f"pipe/{LONGEST_SOCKET} has 108 bytes and at most 107 can be bound" in bench.log.read_text()


def test_names_of_namespaces_are_short_and_tell_shares_apart() -> None:
    """MPS documentation: lowercase letters, digits and underscores, at most 64."""
    names = {namespace_of(f"gpu.portico.dev/gpu={uid}-gpu-0-r{number}") for uid in (A, B) for number in range(50)}
    assert len(names) == 100
    assert all(len(name) == 13 and name.isalnum() and name == name.lower() for name in names)


def test_a_record_of_a_supervisor_before_protocol_3_is_one_of_protocol_2(bench: MpsBench) -> None:
    bench.protocol = 2
    supervisor = bench.start()
    bench.client.ensure(spec(bench.device, QUARTER))
    supervisor.kill()
    supervisor.wait()
    (path,) = bench.mps_dir.glob("*/daemon.json")
    record = msgspec.json.decode(path.read_bytes())
    del record["protocol"], record["spec"]["shares"]
    path.write_bytes(msgspec.json.encode(record))
    bench.protocol = 3
    bench.start()
    (status,) = bench.client.list()
    assert (status.memory_limit, bench.daemons()[0].protocol) == (20 * GIB, 2)


def test_a_supervisor_learns_of_an_upgraded_driver_at_its_start(old_bench: MpsBench) -> None:
    supervisor = old_bench.start()
    supervisor.terminate()
    supervisor.wait()
    offer_namespaces(old_bench.state)
    old_bench.start()
    old_bench.client.ensure(spec(old_bench.device, QUARTER))
    assert old_bench.daemons()[0].protocol == 3
