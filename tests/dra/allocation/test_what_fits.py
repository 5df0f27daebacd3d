"""What fits beside what is allocated: shares, counters, taints, admin access, nodes and gates. One row a rule."""

from __future__ import annotations

import pytest

from dra.allocation import Allocated, Answer, Refused, Snapshot
from dra.objects import ResourceClaim
from tests.dra.builders import (
    DRIVER,
    NODE,
    Json,
    a_claim,
    a_device,
    a_holder,
    a_node,
    a_request,
    a_rule,
    a_share,
    a_slice,
    a_snapshot,
    ask_for,
    some_cards,
    some_devices,
)

HALF = a_share("gpu-0", memory="5Gi")
SHARED = a_slice([a_device("gpu-0", capacity={"memory": "10Gi"}, shared=True)])
PAIR = a_slice(
    [a_device("gpu-0", attributes={"root": "a", "n": 1}), a_device("gpu-1", attributes={"root": "a", "n": 2})]
)
TAINTED = a_slice([a_device("gpu-0", taints=[{"key": "k", "effect": "NoSchedule"}])])
TOLERANT = a_request("r", tolerations=[{"operator": "Exists"}])
SIX = a_request("r", capacity={"memory": "6Gi"})
ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]}
SHARED_CARD = [
    a_slice(name="counters", counters={"card": {"slots": 1}}, count=2),
    a_slice(
        [
            a_device("shared", capacity={"memory": "10"}, shared=True, draws={"card": {"slots": 1}}),
            a_device("other", draws={"card": {"slots": 1}}),
        ],
        name="devices",
        count=2,
    ),
]


def both(attribute: str, kind: str) -> ResourceClaim:
    return a_claim(a_request("r", count=2), constraints=[{kind: f"{DRIVER}/{attribute}"}])


ROWS = [
    pytest.param(a_snapshot(SHARED), a_claim(SIX), True, id="a share"),
    pytest.param(a_snapshot(SHARED), a_claim(SIX, a_request("s", capacity={"memory": "4Gi"})), True, id="two shares"),
    pytest.param(a_snapshot(SHARED), a_claim(SIX, a_request("s", capacity={"memory": "5Gi"})), False, id="too much"),
    pytest.param(a_snapshot(SHARED), a_claim(a_request("r", count=2, capacity={"memory": "1"})), False, id="count: 2"),
    pytest.param(a_snapshot(SHARED, held=[a_holder(a_share("gpu-0", memory="4Gi"))]), a_claim(SIX), True, id="rest"),
    pytest.param(a_snapshot(SHARED, held=[a_holder(HALF)]), a_claim(SIX), False, id="too little left"),
    pytest.param(
        a_snapshot(SHARED, held=[a_holder("gpu-0")]),
        a_claim(SIX),
        False,
        id="a result without share ID takes all of it",
    ),
    pytest.param(
        a_snapshot(SHARED), a_claim(a_request("r", capacity={f"{DRIVER}/memory": "1"})), False, id="another spelling"
    ),
    pytest.param(a_snapshot(*SHARED_CARD), a_claim(SIX | {"name": "x"}), False, id="larger than the device"),
    pytest.param(
        a_snapshot(*SHARED_CARD, held=[a_holder(a_share("shared", memory="1"))]),
        a_claim(a_request("r", capacity={"memory": "1"})),
        True,
        id="a shared device draws once",
    ),
    pytest.param(
        a_snapshot(*SHARED_CARD, held=[a_holder("other")]),
        a_claim(a_request("r", capacity={"memory": "1"})),
        False,
        id="no counter is left for the first share",
    ),
    pytest.param(a_snapshot(*some_cards(1), held=[a_holder("card-0-half-0")]), a_claim(), True, id="the other half"),
    pytest.param(
        a_snapshot(*some_cards(1), held=[a_holder("card-0-whole")]), a_claim(), False, id="no half of a whole in use"
    ),
    pytest.param(
        a_snapshot(*some_cards(1), held=[a_holder("gone")]), a_claim(), True, id="a device that is gone draws nothing"
    ),
    pytest.param(
        a_snapshot(*some_cards(1), gates={"DRAPartitionableDevices": False}), a_claim(), False, id="counters gated off"
    ),
    pytest.param(a_snapshot(TAINTED), a_claim(), False, id="a taint"),
    pytest.param(a_snapshot(TAINTED), a_claim(TOLERANT), True, id="a taint that is tolerated"),
    pytest.param(a_snapshot(TAINTED, gates={"DRADeviceTaints": False}), a_claim(), True, id="taints gated off"),
    pytest.param(a_snapshot(PAIR, rules=[a_rule(selector={})]), a_claim(), False, id="a rule for every device"),
    pytest.param(
        a_snapshot(PAIR, rules=[a_rule(selector={"device": "gpu-0"})]), a_claim(), True, id="for another device"
    ),
    pytest.param(
        a_snapshot(PAIR, rules=[a_rule(selector={})], gates={"DRADeviceTaintRules": False}),
        a_claim(),
        True,
        id="rules gated off",
    ),
    pytest.param(a_snapshot(PAIR), both("root", "matchAttribute"), True, id="match"),
    pytest.param(a_snapshot(PAIR), both("n", "matchAttribute"), False, id="no match"),
    pytest.param(a_snapshot(PAIR), both("n", "distinctAttribute"), True, id="distinct"),
    pytest.param(a_snapshot(PAIR), both("root", "distinctAttribute"), False, id="not distinct"),
    pytest.param(
        a_snapshot(PAIR, held=[a_holder("gpu-0", "gpu-1")]), a_claim(a_request("r", adminAccess=True)), True, id="admin"
    ),
    pytest.param(
        a_snapshot(PAIR), a_claim(a_request("r", adminAccess=True, count=3)), False, id="admin, once in a claim"
    ),
    pytest.param(
        a_snapshot(PAIR, held=[a_holder({"device": "gpu-0", "adminAccess": True}, "gpu-1")]),
        a_claim(),
        True,
        id="admin access holds nothing",
    ),
    pytest.param(
        a_snapshot(a_slice(some_devices(1), nodeSelector=ZONE), nodes=[a_node(zone="z1")]), a_claim(), True, id="here"
    ),
    pytest.param(
        a_snapshot(a_slice(some_devices(1), nodeSelector=ZONE), nodes=[a_node(zone="z2")]), a_claim(), False, id="there"
    ),
    pytest.param(a_snapshot(a_slice(some_devices(1), allNodes=True)), a_claim(), True, id="everywhere"),
    pytest.param(a_snapshot(a_slice(some_devices(1), nodeName="node-b")), a_claim(), False, id="on another node"),
    pytest.param(
        a_snapshot(
            a_slice([a_device("a", nodeName="node-b"), a_device("b", allNodes=True)], perDeviceNodeSelection=True)
        ),
        a_claim(a_request("r", count=2)),
        False,
        id="each device has its nodes",
    ),
]


@pytest.mark.parametrize(("snapshot", "claim", "fits"), ROWS)
def test_it(snapshot: Snapshot, claim: ResourceClaim, *, fits: bool) -> None:
    answer = ask_for(snapshot, claim)

    assert isinstance(answer, Allocated if fits else Refused), answer


def result(answer: Answer) -> dict[str, object]:
    """The fields of the only result."""
    assert isinstance(answer, Allocated), answer
    (device,) = answer.results[0].devices.results
    return {"share_id": device.share_id, "consumed": device.consumed_capacity, "admin": device.admin_access}


def test_a_share_says_what_it_consumes() -> None:
    seen = result(ask_for(a_snapshot(SHARED), a_claim(SIX)))

    assert seen == {"share_id": "", "consumed": {"memory": "6Gi"}, "admin": False}


def test_a_whole_device_does_not() -> None:
    plain = a_slice([a_device("gpu-0", capacity={"memory": "10Gi"})])

    assert result(ask_for(a_snapshot(plain), a_claim(SIX))) == {"share_id": None, "consumed": {}, "admin": False}


@pytest.mark.parametrize(
    ("where", "selector"),
    [
        ({}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}),
        ({"allNodes": True}, None),
        ({"nodeSelector": ZONE}, ZONE["nodeSelectorTerms"][0]),
    ],
)
def test_the_node_selector(where: Json, selector: Json | None) -> None:
    answer = ask_for(a_snapshot(a_slice(some_devices(1), **where), nodes=[a_node(zone="z1")]))

    assert isinstance(answer, Allocated)
    chosen = answer.results[0].node_selector
    assert (chosen and len(chosen.node_selector_terms)) == (1 if selector else None)
    if chosen is not None and selector is not None:
        (term,) = chosen.node_selector_terms
        assert [each.key for each in (*term.match_fields, *term.match_expressions)] == [
            each["key"] for entries in selector.values() for each in entries
        ]
