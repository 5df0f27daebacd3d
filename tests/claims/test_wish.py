"""The one codec between a wish and a query, and what the form refuses: each rule one row."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from urllib.parse import parse_qsl, urlencode

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claims.refusals import Code
from claims.wish import (
    Bounds,
    Choice,
    ClassFacts,
    Constraint,
    ConstraintKind,
    Interval,
    Owner,
    Preset,
    Strategy,
    Style,
    Toleration,
    Wish,
    Workload,
    gib,
    judge,
    read,
    write,
)
from dra.objects.gpuclass import GPUClassSpec
from dra.quantity import Format, Quantity, parse_quantity

GIB = 2**30
H100 = ClassFacts(name="h100", driver="gpu.portico.dev", largest_memory=Quantity.of(80 * GIB, Format.BINARY_SI))
FOREIGN = ClassFacts(name="any")
BOUNDS = Bounds(
    namespaces=frozenset({"ml-train"}),
    classes={"h100": H100, "any": FOREIGN, "amd": ClassFacts(name="amd", driver="gpu.amd.com")},
    today=date(2026, 11, 30),
)
WISH = Wish(namespace="ml-train", name="trainer", device_class="h100")
GIVEN = {"ns": "ml-train", "name": "trainer", "class": "h100"}

LABELS = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
MEMORY = st.none() | st.builds(
    Quantity.of, st.integers(2**20, 2**44), st.sampled_from([Format.BINARY_SI, Format.DECIMAL_SI])
)
EXPRESSIONS = ("true", 'device.driver == "gpu.portico.dev"', 'device.driver != "a" &&\n"b" in device.attributes')
SIZES: st.SearchStrategy[dict[str, object]] = st.one_of(
    st.just({}),
    st.integers(1, 20).map(lambda steps: {"share": steps * 5}),
    st.sampled_from(["1g.10gb", "1g.10gb+me", "7g.141gb", "1c.2g.20gb", "1g.12gb+me.all"]).map(
        lambda name: {"profile": name}
    ),
    st.integers(1, 128).map(lambda slots: {"slots": slots}),
)


def choice(size: dict[str, object], kind: type[Choice], **fields: object) -> Choice:
    return kind(**fields, **size)  # type: ignore[arg-type] # as the strategies below give them


CHOICE = {"device_class": LABELS, "memory": MEMORY, "count": st.integers(1, 32)}
TOLERATIONS = st.one_of(
    st.builds(Toleration, key=LABELS, effect=st.sampled_from(["", "NoSchedule"])),
    st.builds(Toleration, key=LABELS, operator=st.just("Equal"), value=LABELS),
    st.builds(Toleration, effect=st.just("NoExecute"), seconds=st.none() | st.integers(0, 2**31 - 1)),
)
SCALED: st.SearchStrategy[dict[str, object]] = st.one_of(
    st.just({"workload": Workload.POD}),
    st.just({"workload": Workload.OWN, "manifest": "0123456789abcdef" * 4}),
    st.builds(
        dict,
        workload=st.sampled_from([Workload.DEPLOYMENT, Workload.JOB, Workload.STATEFUL_SET]),
        replicas=st.integers(1, 256),
    ),
    st.builds(
        dict,
        workload=st.just(Workload.DEPLOYMENT),
        autoscale=st.tuples(st.integers(1, 100), st.integers(100, 256)),
    ),
)
WISHES = st.builds(
    lambda size, scaled, **fields: choice(size | scaled, Wish, **fields),
    SIZES,
    SCALED,
    **CHOICE,
    namespace=LABELS,
    name=LABELS,
    strategy=st.none() | st.sampled_from(Strategy),
    interval=st.none() | st.sampled_from(Interval),
    owner=st.sampled_from(Owner),
    alternatives=st.lists(
        st.builds(lambda size, **fields: choice(size, Choice, **fields), SIZES, **CHOICE), max_size=7
    ).map(tuple),
    cel=st.lists(st.sampled_from(EXPRESSIONS), max_size=8).map(tuple),
    constraints=st.lists(
        st.builds(Constraint, st.sampled_from(ConstraintKind), st.sampled_from(["gpu.example.com/numa", "a/_B9"])),
        max_size=8,
    ).map(tuple),
    tolerations=st.lists(TOLERATIONS, max_size=16).map(tuple),
    style=st.sampled_from(Style),
    priority=st.just("") | LABELS,
    hours=st.none() | st.integers(1, 24 * 366),
    until=st.none() | st.dates(),
    preset=st.none() | st.sampled_from(Preset),
)
KNOWN = (
    {"ns", "name", "class", "mode", "memory", "count", "share", "profile", "slots", "strategy", "interval", "claim"}
    | {"style", "workload", "replicas", "scale.min", "scale.max", "priority", "hours", "until", "preset"}
    | {f"cel.{number}" for number in range(1, 100)}
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a wish has many fields, and the machine may be busy
@given(WISHES)
def test_a_wish_survives_its_query(wish: Wish) -> None:
    assert read(write(wish)).wish == wish


@given(st.lists(st.tuples(st.sampled_from(sorted(KNOWN)) | st.text(max_size=8), st.text(max_size=8)), max_size=8))
def test_any_query_is_read_without_a_fault_and_keeps_unknown_keys(pairs: list[tuple[str, str]]) -> None:
    reading = read(urlencode(pairs))
    assert list(reading.extra) == [
        pair for pair in parse_qsl(urlencode(pairs), keep_blank_values=True) if pair[0] not in KNOWN
    ]
    again = read(reading.query)
    assert (again.extra, again.wish, again.refusals) == (reading.extra, reading.wish, reading.refusals)
    assert again.values.items() <= reading.values.items()
    assert not any(value for key, value in reading.values.items() if key not in again.values)


def test_an_empty_field_of_a_list_is_not_repeated_but_an_emptied_count_is() -> None:
    empty = {"alt.1.class": "h100", "alt.1.count": "", "alt.1.memory": "", "cel.1": "", "memory": ""}
    reading = read(urlencode(GIVEN | empty))
    assert dict(reading.pairs) == GIVEN | {"alt.1.class": "h100", "alt.1.count": "", "memory": ""}
    assert [refusal.field for refusal in reading.refusals] == ["alt.1.count"]


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
        ("mode", "half", Code.CHOICE_UNKNOWN),
        ("profile", "1g.ten", Code.PROFILE_SHAPE),
        ("profile", "\u0661g.10gb", Code.PROFILE_SHAPE),
        ("slots", "129", Code.NUMBER_BOUNDS),
        ("interval", "Tiny", Code.CHOICE_UNKNOWN),
        ("claim", "both", Code.CHOICE_UNKNOWN),
        ("style", "plain", Code.CHOICE_UNKNOWN),
        ("workload", "CronJob", Code.CHOICE_UNKNOWN),
        ("preset", "x", Code.CHOICE_UNKNOWN),
        ("priority", "High!", Code.TEXT_SHAPE),
        ("hours", "0", Code.NUMBER_BOUNDS),
        ("until", "tomorrow", Code.DAY_SHAPE),
        ("until", "2026-02-30", Code.DAY_SHAPE),
        ("until", "2026-W01-1", Code.DAY_SHAPE),
        ("alt.1.class", "H100!", Code.CLASS_UNKNOWN),
        ("alt.8.class", "a100", Code.ENTRIES_MANY),
        ("cel.1", "device.driver ==", Code.CEL_WRONG),
        ("cel.1", "1 + 1", Code.CEL_WRONG),
        ("cel.9", "true", Code.ENTRIES_MANY),
        ("cel.2", "true || " * 1280 + "true", Code.CEL_LONG),
        # kube-apiserver 1.37.2: "Forbidden: too complex, exceeds cost limit".
        ("cel.1", 'device.attributes["a.example"].?b.orValue("").matches("^NVIDIA H[12]00")', Code.CEL_COST),
        ("constraint.1.attribute", "numa", Code.TEXT_SHAPE),
        ("constraint.1.attribute", "a.example/1numa", Code.TEXT_SHAPE),
        ("toleration.1.key", "a b", Code.TEXT_SHAPE),
        ("toleration.1.operator", "Like", Code.CHOICE_UNKNOWN),
        ("toleration.1.effect", "Never", Code.CHOICE_UNKNOWN),
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
        ({"device_class": "amd", "strategy": Strategy.MPS}, "strategy", Code.CONFIG_FOREIGN),
        ({"until": date(2026, 11, 29)}, "until", Code.DAY_PAST),
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


def of_class(**spec: object) -> ClassFacts:
    """H100 as an administrator bounds it."""
    text = json.dumps({"title": "H100", "deviceClass": {"name": "h100"}} | spec)
    return replace(H100, spec=msgspec.json.decode(text, type=GPUClassSpec))


@pytest.mark.parametrize(
    ("spec", "change", "field", "code"),
    [
        ({"namespaces": ["ml-infer"]}, {}, "class", Code.CLASS_FOREIGN),
        ({"state": "paused", "message": "Until Monday."}, {}, "class", Code.CLASS_PAUSED),
        ({"state": "replaced", "replacedBy": "h200"}, {}, "class", Code.CLASS_REPLACED),
        ({"count": {"min": 2, "max": 4}}, {"count": 1}, "count", Code.COUNT_CLASS),
        ({"count": {"max": 4}}, {"count": 5}, "count", Code.COUNT_CLASS),
        ({"share": {"min": 20, "max": 60, "step": 20}}, {"share": 30}, "share", Code.SHARE_CLASS),
        ({"share": {"min": 20, "max": 60, "step": 20}}, {"share": 80}, "share", Code.SHARE_CLASS),
        ({"memory": {"min": "10Gi"}}, {"memory": Quantity.of(9 * GIB)}, "memory", Code.MEMORY_CLASS),
        ({"memory": {"max": "10Gi"}}, {"memory": Quantity.of(11 * GIB)}, "memory", Code.MEMORY_CLASS),
        ({"mode": "share", "share": {"max": 50}}, {}, "mode", Code.MODE_OTHER),
        ({"mode": "slice"}, {"share": 50}, "mode", Code.MODE_OTHER),
        ({"mode": "whole"}, {"profile": "1g.10gb"}, "mode", Code.MODE_OTHER),
        ({"mode": "vfio"}, {"slots": 1}, "mode", Code.MODE_OTHER),
    ],
)
def test_what_an_administrator_does_not_give_is_refused(
    spec: dict[str, object], change: dict[str, object], field: str, code: Code
) -> None:
    bounds = replace(BOUNDS, classes={"h100": of_class(**spec)})
    refusals = judge(replace(WISH, **change), bounds)  # type: ignore[arg-type] # one row changes one field
    assert [(refusal.field, refusal.code) for refusal in refusals] == [(field, code)]


def test_what_an_administrator_gives_is_not_refused() -> None:
    spec = of_class(namespaces=["ml-train"], mode="share", share={"min": 20, "max": 100, "step": 20})
    bounds = replace(BOUNDS, classes={"h100": spec})
    assert judge(replace(WISH, share=40, memory=Quantity.of(30 * GIB)), bounds) == ()
    assert judge(WISH, bounds) == ()  # all of a device is a share of it


def test_bounds_of_an_alternative_are_said_at_its_own_fields() -> None:
    bounds = replace(BOUNDS, classes={**BOUNDS.classes, "few": replace(of_class(count={"max": 1}), name="few")})
    wish = replace(WISH, alternatives=(Choice(device_class="any"), Choice(device_class="few", count=2)))
    assert [refusal.field for refusal in judge(wish, bounds)] == ["alt.2.count"]


def test_a_fault_of_a_class_is_said_with_its_cause() -> None:
    bounds = replace(BOUNDS, classes={"h100": replace(H100, fault="There is no DeviceClass h100.")})
    (refusal,) = judge(WISH, bounds)
    assert refusal.code is Code.CLASS_FAULT
    assert dict(refusal.facts)["fault"] == "There is no DeviceClass h100"


def test_a_part_of_a_device_class_has_no_extended_resource() -> None:
    facts = replace(H100, name="h100.a", named="h100", selectors=("true",), extended_resource="gpu.example.com/h100")
    wish = replace(WISH, device_class="h100.a", style=Style.EXTENDED)
    refusals = judge(wish, replace(BOUNDS, classes={"h100.a": facts}))
    assert [(refusal.field, refusal.code) for refusal in refusals] == [("style", Code.STYLE_PART)]
