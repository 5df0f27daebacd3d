"""Several users at one MPS daemon: one after the other, or together under one server in multi-user mode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from simulator.silicon.hardware import MpsDaemon
from simulator.silicon.mps_service import MustWait, Peer, Service
from simulator.silicon.state import start_time
from tests.simulator.machines import Machine

ME = os.getpid()
ALICE, BOB = Peer(ME, 1001), Peer(ME, 1002)


@pytest.fixture
def daemon(machine: Machine) -> MpsDaemon:
    return MpsDaemon(
        pid=ME, started=start_time(ME) or 0, pipe_directory="/p", multi_user=False, devices=(machine.gpu().uuid,)
    )


@pytest.fixture
def single(machine: Machine, daemon: MpsDaemon) -> Iterator[Service]:
    service = Service(machine.state, daemon)
    yield service
    service.stop()


@pytest.fixture
def multi(machine: Machine, daemon: MpsDaemon) -> Iterator[Service]:
    service = Service(machine.state, replace(daemon, multi_user=True))
    yield service
    service.stop()


def test_a_second_user_waits_until_the_first_has_gone(single: Service) -> None:
    one, two = single.connect(ALICE, {}), single.connect(ALICE, {})
    with pytest.raises(MustWait):
        single.connect(BOB, {})
    single.disconnect(one)
    with pytest.raises(MustWait):
        single.connect(BOB, {})
    single.disconnect(two)
    assert single.connect(BOB, {}).context.uid == 1002
    assert [server.uid for server in single.daemon().servers] == [1002]


def test_a_user_comes_back_to_the_same_server(single: Service) -> None:
    first = single.connect(ALICE, {})
    single.disconnect(first)
    assert single.connect(ALICE, {}).context.server_pid == first.context.server_pid


def test_multi_user_mode_has_one_server_for_all(multi: Service) -> None:
    alice, bob = multi.connect(ALICE, {}), multi.connect(BOB, {})
    assert alice.context.server_pid == bob.context.server_pid
    assert [server.uid for server in multi.daemon().servers] == [os.getuid()]
    assert sorted(context.uid for _, context in multi.clients()) == [1001, 1002]
