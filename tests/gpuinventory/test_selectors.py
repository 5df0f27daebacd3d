"""What pages read: right numbers, no other team's names, and a pinned number of queries."""

from __future__ import annotations

import json

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from dra.names import DeviceID
from gpuinventory import selectors
from gpuinventory.claimstate import ClaimState
from gpuinventory.selectors import DeviceFilter
from gpuinventory.services.ingest import ingest
from tests.gpuinventory.fleet import DRIVER, claim, device, node_object, seen, slices_of

pytestmark = pytest.mark.django_db
CARDS = 4


@pytest.fixture
def fleet(db: None) -> None:
    """Two nodes with four cards each: shares of two teams on one card, a MIG part on another, a tainted third."""
    ingest("Node", seen([node_object("node-a"), node_object("node-b", unschedulable=True)]))
    ingest("ResourceSlice", seen([*slices_of("node-a", cards=CARDS, unclean=[3]), *slices_of("node-b", cards=CARDS)]))
    ingest(
        "ResourceClaim",
        seen(
            [
                claim("ml-team", "mine", [device("node-a", "gpu-0", percent=25)], pods=["mine-0"]),
                claim("inference-team", "theirs", [device("node-a", "gpu-0", percent=50)], pods=["theirs-0"]),
                claim("inference-team", "part", [device("node-a", "gpu-1-mig-3g40gb-0", percent=100)], pods=["part-0"]),
                claim("ml-team", "waiting"),
            ]
        ),
    )


@pytest.mark.usefixtures("fleet")
def test_an_operator_s_table(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    """Rows, their number, holders, counters, taints, nodes: one query each."""
    with django_assert_num_queries(6):
        found = selectors.list_devices(DeviceFilter(), namespaces=None)
    names = [(row.id.pool, row.id.device, row.state.value) for row in found.rows]
    assert names == [
        ("node-a", "gpu-0", "partly"),
        ("node-a", "gpu-1", "excluded"),
        ("node-a", "gpu-1-mig-3g40gb-0", "held"),
        ("node-a", "gpu-2", "free"),
        ("node-a", "gpu-3", "blocked"),
        *(("node-b", f"gpu-{index}", "free") for index in range(CARDS)),
    ]
    assert [(holder.namespace, holder.claim, holder.percent, holder.pods) for holder in found.rows[0].holders] == [
        ("inference-team", "theirs", 50, ("theirs-0",)),
        ("ml-team", "mine", 25, ("mine-0",)),
    ]
    assert [(taint.key, taint.effect) for taint in found.rows[4].taints] == [(f"{DRIVER}/unclean", "NoSchedule")]
    assert (found.rows[0].node.note, found.rows[5].node.note) == ("", "cordoned")


@pytest.mark.usefixtures("fleet")
def test_a_team_s_table_has_its_own_devices_and_no_other_team_s_names() -> None:
    (row,) = selectors.list_devices(DeviceFilter(), namespaces=("ml-team",)).rows
    assert (row.id.device, row.percent_used, row.badge.tone) == ("gpu-0", 75, "mine")
    assert [holder.claim for holder in row.holders] == ["mine"]
    by_their_name = DeviceFilter(text="theirs")
    assert selectors.list_devices(by_their_name, namespaces=("ml-team",)).rows == ()


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(DeviceFilter(state="blocked"), ["gpu-3"], id="state"),
        pytest.param(DeviceFilter(node="node-b"), [f"gpu-{index}" for index in range(CARDS)], id="node"),
        pytest.param(DeviceFilter(text="THEIRS"), ["gpu-0"], id="a holder's name"),
        pytest.param(DeviceFilter(text="3g.40"), ["gpu-1-mig-3g40gb-0"], id="a profile"),
        pytest.param(DeviceFilter(product="A100"), [], id="another product"),
    ],
)
def test_filters(wanted: DeviceFilter, expected: list[str]) -> None:
    assert [row.id.device for row in selectors.list_devices(wanted, namespaces=None).rows] == expected


@pytest.mark.usefixtures("fleet")
def test_pages_of_fifty() -> None:
    everything = DeviceFilter(everything=True)
    first = selectors.list_devices(everything, namespaces=None)
    last = selectors.list_devices(everything, namespaces=None, page=99)
    # 26 devices a card: the whole, and the 25 placements of an H100.
    assert first.pager.paginator.count == 2 * CARDS * 26
    assert (len(first.rows), last.pager.number, len(last.rows)) == (50, 5, 2 * CARDS * 26 - 4 * 50)


@pytest.mark.usefixtures("fleet")
def test_totals_count_whole_cards_and_name_nobody(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(1):
        (total,) = selectors.totals_by_product()
    numbers = (total.total, total.free, total.partly, total.held, total.excluded, total.blocked, total.unknown)
    assert numbers == (8, 5, 1, 0, 1, 1, 0)
    assert [(piece.state, piece.number, piece.start) for piece in total.pieces] == [
        ("partly", 1, 0), ("excluded", 1, 1), ("blocked", 1, 2), ("free", 5, 3),
    ]  # fmt: skip


@pytest.mark.usefixtures("fleet")
def test_a_profile_is_counted_by_cards_with_room(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(1):
        totals = {total.profile: (total.held, total.cards) for total in selectors.totals_by_profile()}
    # Five untouched cards; the card with a 3g.40gb has room for one more of it, and for no 7g.80gb.
    assert (totals["3g.40gb"], totals["7g.80gb"]) == ((1, 6), (0, 5))


@pytest.mark.usefixtures("fleet")
def test_one_device_for_its_operator_and_for_a_team() -> None:
    card = DeviceID(DRIVER, "node-a", "gpu-0")
    detail = selectors.device_detail(card, namespaces=None)
    assert detail
    assert [(segment.start, segment.width) for segment in detail.segments] == [(0, 50), (50, 25)]
    assert len(detail.memory_slices) == 8
    mine = selectors.device_detail(card, namespaces=("ml-team",))
    assert mine
    assert [(s.width, s.holder.claim if s.holder else "others") for s in mine.segments] == [
        (25, "mine"),
        (50, "others"),
    ]
    assert selectors.device_detail(card, namespaces=("another-team",)) is None
    assert selectors.device_detail(DeviceID(DRIVER, "node-a", "gpu-2"), namespaces=("ml-team",)) is None


@pytest.mark.usefixtures("fleet")
def test_claims_of_namespaces(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(3):
        claims = selectors.resource_claims(["ml-team"])
    assert [(each.ref.name, each.state) for each in claims] == [
        ("mine", ClaimState.IN_USE),
        ("waiting", ClaimState.WAITING_FOR_POD),
    ]
    (given,) = claims[0].devices
    assert (given.node, given.percent, given.product) == ("node-a", "25", "NVIDIA H100 80GB HBM3")
    assert claims[0].asked == ("1 \N{MULTIPLICATION SIGN} physical-gpu",)


def test_claims_by_label() -> None:
    ingest("ResourceClaim", seen([claim("ml-team", "a", labels={"portico.dev/request": "k"}), claim("ml-team", "b")]))
    found = selectors.resource_claims(["ml-team"], labels={"portico.dev/request": "k"})
    assert [each.ref.name for each in found] == ["a"]


@pytest.mark.parametrize(
    ("word", "held_by"),
    [
        ("Server", "the MPS server"),
        ("ClientEnvironment", "the container's environment"),
        ("None", ""),
        ("<b>", ""),
        (["Server"], ""),
        (None, ""),
    ],
)
def test_who_holds_a_share_to_its_limits_is_said_in_words(word: object, held_by: str) -> None:
    content = json.loads(claim("ml-team", "a", [device("node-a", "gpu-0", percent=25)]))
    own = {"driver": DRIVER, "pool": "node-a", "device": "gpu-0", "shareID": "share-25", "data": {"enforcedBy": word}}
    content["status"]["devices"] = [own]
    ingest("ResourceClaim", seen([json.dumps(content).encode()]))

    (found,) = selectors.resource_claims(["ml-team"])

    assert [given.limits_held_by for given in found.devices] == [held_by]


@pytest.mark.parametrize(
    ("data", "last"),
    [
        ({"mode": "Physical", "lastProcessSeen": "2026-01-01T08:00:00Z"}, "2026-01-01T08:00:00Z"),
        ({"mode": "MIG", "lastProcessSeen": ""}, ""),
        ({"mode": "VFIO"}, None),
        ({"mode": "MIG", "lastProcessSeen": "<b>"}, None),
        ({"mode": "MIG", "lastProcessSeen": "2026-01-01T08:00:00"}, None),
        ({"mode": "MIG", "lastProcessSeen": 17}, None),
    ],
)
def test_when_a_process_was_last_seen_is_told(data: dict[str, object], last: str | None) -> None:
    content = json.loads(claim("ml-team", "a", [device("node-a", "gpu-0", percent=25)]))
    own = {"driver": DRIVER, "pool": "node-a", "device": "gpu-0", "shareID": "share-25", "data": data}
    content["status"]["devices"] = [own]
    ingest("ResourceClaim", seen([json.dumps(content).encode()]))

    (found,) = selectors.resource_claims(["ml-team"])

    assert [given.process and given.process.last for given in found.devices] == [last]
