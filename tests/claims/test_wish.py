"""The one codec between a wish and a query, and what the form refuses: each rule one row."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims.refusals import Code
from claims.wish import Bounds, ClassFacts, Strategy, Wish, gib, judge, read, write
from dra.quantity import Format, Quantity, parse_quantity

GIB = 2**30
H100 = ClassFacts(name="h100", driver="gpu.portico.dev", largest_memory=Quantity.of(80 * GIB, Format.BINARY_SI))
FOREIGN = ClassFacts(name="any")
BOUNDS = Bounds(namespaces=frozenset({"ml-train"}), classes={"h100": H100, "any": FOREIGN})
WISH = Wish(namespace="ml-train", name="trainer", device_class="h100")
GIVEN = {"ns": "ml-train", "name": "trainer", "class": "h100"}

LABELS = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
MEMORY = st.integers(2**20, 2**44)
WISHES = st.builds(
    Wish,
    namespace=LABELS,
    name=LABELS,
    device_class=LABELS,
    memory=st.none() | st.builds(Quantity.of, MEMORY, st.sampled_from([Format.BINARY_SI, Format.DECIMAL_SI])),
    count=st.integers(1, 32),
    share=st.integers(1, 20).map(lambda steps: steps * 5),
    strategy=st.none() | st.sampled_from(Strategy),
)


@given(WISHES)
def test_a_wish_survives_its_query(wish: Wish) -> None:
    assert read(write(wish)).wish == wish


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=8))
def test_any_query_is_read_without_a_fault_and_keeps_unknown_keys(pairs: list[tuple[str, str]]) -> None:
    reading = read(urlencode(pairs))
    known = {"ns", "name", "class", "memory", "count", "share", "strategy"}
    assert list(reading.extra) == [
        pair for pair in parse_qsl(urlencode(pairs), keep_blank_values=True) if pair[0] not in known
    ]
    again = read(reading.query)
    assert (again.values, again.extra, again.wish) == (reading.values, reading.extra, reading.wish)


def test_defaults_are_one_whole_device() -> None:
    assert read(urlencode(GIVEN)).wish == WISH


def test_the_last_of_a_doubled_key_counts_and_space_around_a_value_does_not() -> None:
    assert read(urlencode(GIVEN) + "&count=2&count=+3+").wish == replace(WISH, count=3)


def test_memory_is_kept_in_whole_bytes() -> None:
    assert read(urlencode(GIVEN | {"memory": "1.5Gi"})).wish == replace(WISH, memory=parse_quantity("1536Mi"))


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("ns", "", Code.FIELD_MISSING),
        ("name", " ", Code.FIELD_MISSING),
        ("class", "", Code.FIELD_MISSING),
        ("name", "My Trainer", Code.NAME_SHAPE),
        ("name", "a" * 64, Code.NAME_SHAPE),
        ("name", "-a", Code.NAME_SHAPE),
        ("class", "H100!", Code.CLASS_UNKNOWN),
        ("count", "", Code.COUNT_BOUNDS),
        ("count", "0", Code.COUNT_BOUNDS),
        ("count", "33", Code.COUNT_BOUNDS),
        ("count", "-1", Code.COUNT_BOUNDS),
        ("count", "1.0", Code.COUNT_BOUNDS),
        ("count", "\u0661", Code.COUNT_BOUNDS),
        ("count", "9" * 5000, Code.COUNT_BOUNDS),
        ("share", "0", Code.SHARE_BOUNDS),
        ("share", "105", Code.SHARE_BOUNDS),
        ("share", "33", Code.SHARE_BOUNDS),
        ("share", "a quarter", Code.SHARE_BOUNDS),
        ("memory", "lots", Code.MEMORY_SHAPE),
        ("memory", "40GB", Code.MEMORY_SHAPE),
        ("memory", "40", Code.MEMORY_BOUNDS),
        ("memory", "-1Gi", Code.MEMORY_BOUNDS),
        ("memory", "17Ti", Code.MEMORY_BOUNDS),
        ("strategy", "TimeSlicing", Code.STRATEGY_UNKNOWN),
    ],
)
def test_a_wrong_value_is_refused_at_its_field(key: str, value: str, code: Code) -> None:
    reading = read(urlencode(GIVEN | {key: value}))
    assert [(refusal.field, refusal.code) for refusal in reading.refusals] == [(key, code)]
    assert reading.wish is None
    assert reading.wrong is (code is not Code.FIELD_MISSING)


def test_every_wrong_field_is_named_at_once() -> None:
    reading = read("count=0&share=7&memory=x")
    assert [refusal.field for refusal in reading.refusals] == ["ns", "name", "class", "count", "share", "memory"]


def test_a_possible_wish_is_not_refused() -> None:
    shared = replace(WISH, share=25, memory=Quantity.of(20 * GIB), strategy=Strategy.MPS)
    assert judge(shared, BOUNDS) == ()


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"namespace": "other"}, "ns", Code.NAMESPACE_FOREIGN),
        ({"device_class": "h200"}, "class", Code.CLASS_UNKNOWN),
        ({"count": 2, "share": 50}, "share", Code.SHARE_OF_MANY),
        ({"share": 25, "memory": Quantity.of(20 * GIB + 1)}, "memory", Code.MEMORY_OVER_SHARE),
        ({"share": 25, "memory": Quantity.of(81 * GIB)}, "memory", Code.MEMORY_OVER_DEVICE),
        ({"device_class": "any", "strategy": Strategy.MPS}, "strategy", Code.STRATEGY_NO_DRIVER),
    ],
)
def test_what_the_cluster_can_not_give_is_refused(change: dict[str, object], field: str, code: Code) -> None:
    refusals = judge(replace(WISH, **change), BOUNDS)  # type: ignore[arg-type] # one row changes one field
    assert [(refusal.field, refusal.code) for refusal in refusals] == [(field, code)]


@pytest.mark.parametrize(
    ("memory", "share", "enough"), [("21Gi", 25, "30"), ("20481Mi", 25, "30"), ("79Gi", 5, "100"), ("80Gi", 95, "100")]
)
def test_the_share_that_covers_the_memory_is_said(memory: str, share: int, enough: str) -> None:
    (refusal,) = judge(replace(WISH, share=share, memory=parse_quantity(memory)), BOUNDS)
    assert dict(refusal.facts)["enough"] == enough


def test_a_whole_device_too_small_is_left_to_the_scheduler() -> None:
    assert judge(replace(WISH, memory=Quantity.of(100 * GIB)), BOUNDS) == ()


def test_memory_of_unseen_devices_is_not_judged() -> None:
    assert judge(replace(WISH, device_class="any", share=5, memory=Quantity.of(100 * GIB)), BOUNDS) == ()


@pytest.mark.parametrize(
    ("amount", "said"), [(20 * GIB, "20 GiB"), (21_474_836_479, "19.9 GiB"), (GIB // 2, "0.5 GiB")]
)
def test_memory_is_said_rounded_down(amount: int, said: str) -> None:
    assert gib(amount) == said
