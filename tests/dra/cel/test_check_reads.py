"""Which values a selector can look at, and which environment and result it must have."""

from __future__ import annotations

import pytest

from dra.cel import CelTypeError, compile_expression

A, C = "attributes", "capacity"
D = "gpu.example.com"
MODEL = f'device.attributes["{D}"].model'


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("true", set()),
        ('device.driver == "x" && !device.allowMultipleAllocations', set()),
        (f'{MODEL} == "H100"', {(A, D, "model")}),
        (f'device.attributes["{D}"]["model"] == "H100"', {(A, D, "model")}),
        ("device.attributes.short.model == 1", {(A, "short", "model")}),
        (f"has({MODEL}.foo)", {(A, D, "model")}),
        (f"has({MODEL})", {(A, D, "model")}),
        (f'device.attributes[?"{D}"].?model.hasValue()', {(A, D, "model")}),
        (f'"model" in device.attributes["{D}"]', {(A, D, "model")}),
        ("has(device.attributes.absent)", set()),
        (f'device.capacity["{D}"].memory.isInteger() || {MODEL} == 1', {(C, D, "memory"), (A, D, "model")}),
        (f'cel.bind(a, device.attributes["{D}"], a.model == a.index)', {(A, D, "model"), (A, D, "index")}),
        (f"cel.bind(a, {MODEL}, a == 1)", {(A, D, "model")}),
        ("cel.bind(a, 1, a == 1)", set()),
        (f'["a"].exists(m, {MODEL} == m)', {(A, D, "model")}),
        (f"[1].all(device, device == 1) && {MODEL} == 1", {(A, D, "model")}),
        (f'device.attributes["{D}"].exists(k, k == "a")', None),
        (f'device.attributes["{D}"].size() == 1', None),
        ('"d" in device.attributes', None),
        (f'device.attributes["{D}"][device.driver] == 1', None),
        ("device.attributes[device.driver].model == 1", {(A, "", "model")}),
        (
            'has(device.capacity[device.driver].memory) && "m" in device.attributes[device.driver]',
            {(C, "", "memory"), (A, "", "m")},
        ),
        ("device.attributes[?device.driver].?model.hasValue()", {(A, "", "model")}),
        ("cel.bind(d, device.driver, device.attributes[d].model == 1)", {(A, "", "model")}),
        ("device.attributes[device.driver].size() == 1", None),
        ("device.driver in device.attributes", None),
        (f'device.attributes[device.attributes["{D}"].model].index == 1', None),
        ("dyn(device).driver == 'x'", None),
        (f'cel.bind(a, device.attributes["{D}"], a.size() == 1)', None),
    ],
)
def test_reads(text: str, reads: set[tuple[str, str, str]] | None) -> None:
    found = compile_expression(text).reads
    assert found == (None if reads is None else frozenset(reads))


@pytest.mark.parametrize(
    ("text", "stored", "new"),
    [  # surprise 46: attributes are dyn in stored selectors, any in new ones
        (f'{MODEL}.exists(x, x == "a")', True, False),
        (f'{MODEL}.includes("a")', True, False),
        (MODEL, True, True),
        ("dyn(true)", True, False),
        ("device.allowMultipleAllocations", True, True),
        ("1", False, False),
    ],
)
def test_environments(text: str, stored: bool, new: bool) -> None:  # noqa: FBT001
    for environment, compiles in (("stored", stored), ("new", new)):
        if compiles:
            compile_expression(text, environment=environment)
        else:
            with pytest.raises(CelTypeError):
                compile_expression(text, environment=environment)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("1 == 1.0", "found no matching overload for '_==_' applied to '(int, double)'", (1, 3)),
        ("a == 1", "undeclared reference to 'a' (in container '')", (1, 1)),
        ("true &&\n  'x'.foo() == 1", "undeclared reference to 'foo' (in container '')", (2, 10)),
        ("device.foo", "undefined field 'foo'", (1, 7)),
        ("device", "must evaluate to bool or the unknown type, not kubernetes.DRADevice", (1, 1)),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'", (1, 5)),
        ("timestamp('x') == timestamp('x')", "invalid timestamp argument", (1, 11)),
        ("'a'.matches('(')", "invalid matches argument", (1, 13)),
        (
            "int('x') == 1",
            "program instantiation failed: type conversion error from 'string' to 'int'",
            (1, 4),
        ),
    ],
)
def test_faults_name_place_and_reason_as_cel_go_does(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(CelTypeError) as raised:
        compile_expression(text)
    assert raised.value.message == message
    assert (raised.value.line, raised.value.column) == place
    assert str(raised.value) == f"{place[0]}:{place[1]}: {message}"
    assert raised.value.rule


def test_what_crashes_upstream_does_not_compile() -> None:
    with pytest.raises(CelTypeError, match="must be known to be optional"):
        compile_expression('[?device.attributes["d"].x] == []')
