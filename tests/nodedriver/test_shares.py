"""Shares that come and go on a card and on a MIG instance: who enforces them, and whose clients end with them.

The silicon is the judge: a client without any environment meets what the server of its daemon has, and nothing less.
"""

import contextlib
import os
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from dra.names import ClaimRef, ClaimUID
from nodedriver.driver import Prepared
from nodedriver.holding import PreparedDevice, limits_of, sharers
from nodedriver.mps import MpsClient
from nodedriver.mpsd.namespaces import namespace_of
from nodedriver.sharing import EnforcedBy, enforced_by
from simulator.silicon.hardware import MpsDaemon
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import Machine
from tests.nodedriver.mps import cuda

pytestmark = pytest.mark.programs

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
DEVICES = ("gpu-0", "gpu-1-mig-3g40gb-4")
SHARES = (10, 25, 25, 50)
SEEDS = range(12) if os.environ.get("PORTICO_FULL") else range(1)
STEPS = 14
by_both_protocols = pytest.mark.parametrize("supervised", [2, 3], indirect=True)


@dataclass
class Walk:
    """Which claims hold what, and the uids that were told to write their statuses since the last look."""

    machine: Machine
    held: dict[str, tuple[str, int, ClaimRef]] = field(default_factory=dict)
    enforced: dict[ClaimUID, EnforcedBy] = field(default_factory=dict)
    made: int = 0

    def step(self, choose: random.Random) -> None:
        """One more share where one fits, or one less."""
        device, share = choose.choice(DEVICES), choose.choice(SHARES)
        taken = sum(share for where, share, _ in self.held.values() if where == device)
        if self.held and (taken + share > 100 or choose.random() < 0.4):
            _, _, ref = self.held.pop(choose.choice(sorted(self.held)))
            assert self.machine.driver.unprepare(ref) == ""
            return
        self.made += 1
        uid = f"{self.made:08x}-0000-4000-8000-000000000000"
        ref = self.machine.allocate(allocated(given(device, share), name=f"claim-{self.made}", uid=uid))
        assert isinstance(self.machine.driver.prepare(ref), Prepared)
        self.held[uid] = (device, share, ref)

    def check(self) -> None:
        """Every claim's word on who enforces it is true, and whoever's changed was told to say so."""
        claims = self.machine.prepared.read().claims
        assert {str(uid) for uid in claims} == set(self.held)
        now = {}
        for claim in claims.values():
            (device,) = claim.devices
            shares, protocol = limits_of(sharers(device, claims.values())), self.daemon_of(device).protocol
            now[claim.uid] = enforced_by(device.mps, shares, protocol)
            assert (now[claim.uid] is EnforcedBy.SERVER) == holds(self.daemon_of(device), device), (claim, now)
        changed = {uid for uid, who in now.items() if self.enforced.get(uid) is not who}
        assert changed <= set(self.machine.wished)
        self.machine.wished.clear()
        self.enforced = now
        assert len(self.machine.daemons()) == len({device for device, _, _ in self.held.values()})

    def daemon_of(self, device: PreparedDevice) -> MpsDaemon:
        (daemon,) = [each for each in self.machine.state.read().mps_daemons if each.devices == (device.uuid,)]
        return daemon


def holds(daemon: MpsDaemon, device: PreparedDevice) -> bool:
    """Whether its server holds a client to the share's limits, whatever the client's environment."""
    assert device.mps
    assert device.mps.thread_percentage
    assert device.mps.memory_limit
    (server,) = daemon.servers
    percentage, memory = server.active_thread_percentage, server.memory_limits.get(device.uuid)
    if daemon.protocol == 3:
        (own,) = [each for each in server.namespaces if each.name == namespace_of(device.cdi_device_id)]
        percentage, memory = own.active_thread_percentage or 100.0, own.memory_limit
    return percentage <= device.mps.thread_percentage and memory is not None and memory <= device.mps.memory_limit


@by_both_protocols
@pytest.mark.parametrize("seed", SEEDS)
def test_who_enforces_a_share_is_true_as_neighbours_come_and_go(supervised: Machine, seed: int) -> None:
    walk, choose = Walk(supervised), random.Random(seed)
    for _ in range(STEPS):
        walk.step(choose)
        walk.check()


@by_both_protocols
@pytest.mark.parametrize("device", DEVICES)
def test_the_clients_of_a_share_end_with_it_and_others_live_on(supervised: Machine, device: str) -> None:
    claims = [allocated(given(device, 50), name=name, uid=uid) for name, uid in (("a", A), ("b", B))]
    refs = [supervised.allocate(claim) for claim in claims]
    for ref in refs:
        assert isinstance(supervised.driver.prepare(ref), Prepared)
    client = MpsClient(supervised.plugin_dir / "mps/mpsd.sock")

    def environment(uid: str) -> dict[str, str]:
        """Of a process in the claim's container, as seen from outside."""
        spec = supervised.specs()[uid]
        edits = spec["devices"][0]["containerEdits"]
        mounts = {mount["containerPath"]: mount["hostPath"] for mount in edits["mounts"]}
        entries = dict(entry.split("=", 1) for entry in (*spec["containerEdits"]["env"], *edits["env"]))
        return entries | {"CUDA_MPS_PIPE_DIRECTORY": mounts[entries["CUDA_MPS_PIPE_DIRECTORY"]]}

    with cuda(supervised.tree, "1G", **environment(A)) as of_a, cuda(supervised.tree, "1G", **environment(B)) as of_b:
        assert sorted(client.list()[0].clients) == sorted([of_a["pid"], of_b["pid"]])
        assert supervised.driver.unprepare(refs[0]) == ""
        assert client.list()[0].clients == (of_b["pid"],)
        assert supervised.driver.unprepare(refs[1]) == ""
    assert supervised.daemons() == {}


def test_a_mig_instance_takes_fewer_clients_than_a_card(supervised: Machine) -> None:
    """MPS on MIG: 48 clients of a whole card are 6 of a 1g.10gb, which has 1 of 7 compute slices."""
    ref = supervised.allocate(allocated(given("gpu-0-mig-1g10gb-0", 50), uid=A))
    assert isinstance(supervised.driver.prepare(ref), Prepared)
    (status,) = MpsClient(supervised.plugin_dir / "mps/mpsd.sock").list()
    answers: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        for _ in range(9):
            answer = stack.enter_context(cuda(supervised.tree, "1M", CUDA_MPS_PIPE_DIRECTORY=status.pipe_directory))
            answers.append(answer)
    refused = [answer["result"] for answer in answers if not answer["ok"]]
    assert (len(answers) - len(refused), set(refused)) == (6, {"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"})
