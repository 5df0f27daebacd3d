"""Fields whose feature gates are off are dropped in silence, and the portal's own look finds the same on both doors."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from dra.kube.probes import PROBES, Probe, plain
from dra.kube.requests import Request
from tests.contracts.conftest import Door, Reply

# Kubernetes 1.37 as it comes: `pkg/features/kube_features.go`, and no minimum compatibility version above 1.36.
OFF = {
    "DRAListTypeAttributes", "DRADeviceCompatibilityGroups", "DRAOptionalNodeOperations", "DRADerivedAttributes",
    "DRAFractionalCapacityRange",
}  # fmt: skip


def sent(door: Door, request: Request) -> Reply:
    return door.send(request.method, f"{request.path}?{urlencode(request.query)}", request.body)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.gates[0])
def test_a_field_is_kept_or_dropped_as_its_gate_is(door: Door, probe: Probe) -> None:
    accepted = sent(door, plain(probe.resource, door.namespace))
    assert accepted.code == 201, accepted.body
    reply = sent(door, probe.request(door.namespace))
    if reply.code == 201:
        state, evidence = probe.judge(json.dumps(reply.body).encode())
    else:
        assert reply.code == 422, reply.body
        state, evidence = probe.judge_refusal(reply.body["message"])
    assert state == ("off" if probe.gates[0] in OFF else "on"), evidence
