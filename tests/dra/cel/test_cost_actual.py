"""What evaluations cost of the full and of the bare device. Numbers are cel-go's, `@` is their own domain."""

from __future__ import annotations

import pytest

from dra.cel import CelDevice, CelRuntimeError, compile_expression
from dra.cel.cost.bounds import may_exceed
from dra.cel.cost.meter import CancelledError, Meter
from dra.objects import DeviceAttribute
from tests.dra.cel.asking import BARE, DRIVER, FULL

OWN = 'device.attributes["gpu.example.com"]'
CANCELLED = "operation cancelled: actual cost limit exceeded"

REACHED = (
    ('@.model == "H100"', (5, 5)),
    ("@.absent == 1", (5, 5)),
    ("has(@.model)", (3, 3)),
    ("has(@.model.x)", (4, 3)),
    ('@.?model.orValue("x") == "y"', (5, 4)),
    ("@[@.model.lowerAscii()] == 1", (10, 10)),
    ("[1, 2][@.index] == 2", (6, 6)),
    ('{"a": {"b": 1}}.a.b == 1', (4, 4)),
    ('(true ? @ : @).model == "x"', (4, 4)),
    ("(true ? @.index : 1) == 1", (4, 4)),
    ("has((true ? @ : @).model)", (2, 2)),
    ('@.model in ["a", "b"]', (4, 4)),
    ("@.absent in []", (0, 0)),
    ('@.model in ["a", device.driver]', (18, 18)),
    ('"a,b".split(",")[0] == "a"', (4, 4)),
    ("cel.bind(a, device.attributes, true)", (0, 0)),
    ("[[1], [2]] == [[1], [2]]", (1, 1)),
    ('[device.driver, "a"] == ["b"]', (13, 13)),
    ('{"a": device.driver} == {"a": "b"}', (33, 33)),
    ("true ? has(device.attributes.a) : false", (2, 2)),
    ("@[@.model] == 1", (8, 8)),
    ('has(device.?attributes["absent.example.com"].x)', (2, 2)),
    ('@[?"absent"].hasValue()', (4, 4)),
    ('@[?"model"].hasValue()', (5, 4)),
)

CHARGED = (
    ("@.absent == @.absent", (9, 9)),
    ("@.absent.contains(device.driver)", (8, 8)),
    ('@.absent.matches("a")', (4, 4)),
    ("@.absent.matches(device.driver)", (10, 10)),
    ("@.absent.isGreaterThan(@.v)", (4, 4)),
    ('@.absent.replace("a", "b") == "a"', (5, 5)),
    ('@.absent == 1 || device.driver == "gpu.example.com"', (9, 9)),
    ('true || device.driver == "x"', (0, 0)),
    ("@.absent.exists(x, true)", (4, 4)),
    ("[1, 2, 3].exists(x, x == 2)", (16, 16)),
    ("[1, 2, 3].map(x, x > 1, x) == [2, 3]", (34, 34)),
    ('["a", "b"].all(s, device.driver.contains(s))', (17, 17)),
    ('"日本日本日本" == "日本日本日本日本"', (1, 1)),
    ('["日本日本日本"].includes("a")', (1, 1)),
    ('@.l.includes("b")', (4, 5)),
    ('optional.of("abcdefghijklmnopqrst") == optional.of("abcdefghijklmnopqrst")', (4, 4)),
    ('cidr("10.0.0.0/0").containsIP("10.0.0.1")', (2, 2)),
    ('cidr("10.0.0.0/9").containsCIDR("10.0.0.0/10")', (6, 6)),
    ('format.uri().validate("").hasValue()', (278, 278)),
    ("[[1, 2], [3]].flatten() == [1, 2, 3]", (14, 14)),
    ("lists.range(7).size() == 7", (20, 20)),
    ("['b', 'a'].sort() == ['a', 'b']", (20, 20)),
    ("['b', 'a'].sortBy(x, x) == ['a', 'b']", (49, 49)),
    ("['a','b'].join('-') == 'a-b'", (2, 2)),
    ("'a-b'.split('-') == ['a', 'b']", (2, 2)),
    ("'abc'.findAll('.') == ['a', 'b', 'c']", (2, 2)),
    ("quantity('12345678901').add(1).isGreaterThan(quantity('1'))", (5, 5)),
    ("sets.equivalent([1, 2], [1, 2])", (9, 9)),
    ("dyn(@.absent).distinct() == [1] || true", (5, 5)),
    ("@.index.distinct() == [1] || true", (4, 4)),
    ("[1].flatten(@.absent) == [1] || true", (4, 4)),
    ("dyn([@.absent]).isSorted()", (16, 16)),
)

# Text, cost at most as the API server estimates it, actual cost, what is said.
LIMITED = (
    ("[lists.range(1000)].flatten().all(x, x >= 0)", 1039, 6034, "True"),
    ("[lists.range(100000)].flatten().distinct().size() > 0", 100048, 20000100044, CANCELLED),
    ('lists.range(4000).all(i, format.uri().validate("").hasValue())', 24012, 1000155, CANCELLED),
    ('lists.range(2000).all(x, "".split(",").all(y, lists.range(1000).size() == 1000))', 10012, 1000588, CANCELLED),
    ("cel.bind(a, lists.range(1000), cel.bind(b, a.map(x, a), b.indexOf(a) == -1))", 15046, 1014015, CANCELLED),
    ("lists.range(1000).all(x, lists.range(1000).size() > 0) || true", 1017012, 1000753, CANCELLED),
)


@pytest.mark.parametrize(("text", "costs"), REACHED)
def test_names_fields_keys_and_literals(text: str, costs: tuple[int, int]) -> None:
    program = compile_expression(text.replace("@", OWN))
    assert (program.cost(FULL)[1], program.cost(BARE)[1]) == costs


@pytest.mark.parametrize(("text", "costs"), CHARGED)
def test_calls_and_loops(text: str, costs: tuple[int, int]) -> None:
    program = compile_expression(text.replace("@", OWN))
    assert (program.cost(FULL)[1], program.cost(BARE)[1]) == costs


@pytest.mark.parametrize(("text", "most", "cost", "answer"), LIMITED)
def test_the_limit_ends_an_evaluation_even_where_the_estimate_is_below_it(
    text: str, most: int, cost: int, answer: str
) -> None:
    program = compile_expression(text)
    assert program.max_cost == most
    assert program.cost(FULL)[1] == cost
    try:
        said = str(program.matches(FULL))
    except CelRuntimeError as error:
        said = str(error)
    assert said == answer


def test_a_device_that_cannot_be_converted_has_no_cost() -> None:
    result, cost = compile_expression("true").cost(CelDevice.of(DRIVER, {"v": DeviceAttribute(version="1")}, {}))
    assert isinstance(result, CelRuntimeError)
    assert cost is None


@pytest.mark.parametrize(
    ("text", "metered"),
    [
        ('@.model.lowerAscii().matches("^h[0-9]+$") && @.index in [1, 2]', False),
        ('@.l.exists(x, x == "a")', False),
        ('@.l.includes("a")', False),
        ("[1, 2].sum() == 3", False),
        ("[[1], [2]].indexOf([1]) == 0", True),
        ("[[1], [2]].flatten() == [1, 2]", True),
        ('["a"].exists(x, "a,b".split(",")[0] == x)', True),
        ('device.capacity["gpu.example.com"].memory != quantity("1")', True),
        ("lists.range(50000).all(x, x >= 0 && x <= 50000)", True),
    ],
)
def test_only_what_might_exceed_the_limit_is_metered(text: str, metered: bool) -> None:  # noqa: FBT001  # a column
    program = compile_expression(text.replace("@", OWN))
    assert may_exceed(program.checked, program.max_cost) is metered


def test_a_meter_takes_values_from_the_last_on_and_stops_at_its_limit() -> None:
    meter = Meter(limit=5)
    for node_id, value in ((1, "a"), (2, "b"), (3, "c")):
        meter.push(node_id, value, cost=1)
    assert meter.take([1, 3]) == ("a", "c")
    assert meter.take([2]) is None
    meter.push(4, "d", cost=2)
    meter.drop(9, 4)
    assert meter.take([4]) is None
    with pytest.raises(CancelledError, match="actual cost limit exceeded"):
        meter.push(5, "e", cost=1)
    assert meter.cost == 6
