"""Bad and hostile input: a fault with its place, and never anything else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra.cel import CelCompileError, CelRuntimeError, CelSyntaxError, compile_expression
from tests.dra.cel.asking import BARE, FULL

PIECES = (
    *(
        "device",
        ".attributes",
        '["gpu.example.com"]',
        ".model",
        ".capacity",
        ".memory",
        "has(",
        "cel.bind(x, ",
        "x",
        "1",
    ),
    *(
        "1u",
        "1.5",
        '"a"',
        "b'a'",
        "true",
        "null",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ",",
        ":",
        "?",
        ".?",
        "[?",
        " && ",
        " || ",
    ),
    *(
        " == ",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " < ",
        " in ",
        "!",
        "-",
        ".all(x, ",
        ".map(x, ",
        ".filter(x, ",
        ".size()",
    ),
    *(
        "quantity(",
        "semver(",
        "duration(",
        "dyn(",
        "optional.of(",
        ".orValue(",
        ".matches(",
        "'(' ",
        "type(",
        "\\",
        "`",
        "\n",
    ),
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", (1, 1)),
        ("true\n  && ", (2, 6)),
        ("1 +\n\n@", (3, 1)),
        ("[1,,]", (1, 4)),
        ("9223372036854775808 > 0", (1, 1)),
        ("true && 'é' == \"\\ud800\"", (1, 16)),
        ("[1].all(1, true)", (1, 9)),
        ("has(1)", (1, 5)),
        ("if", (1, 1)),
    ],
)
def test_syntax_faults_name_their_place(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(CelSyntaxError) as raised:
        compile_expression(text)
    assert (raised.value.line, raised.value.column) == place


@pytest.mark.parametrize(
    ("head", "middle", "tail", "deepest"),
    [  # how often cel-go lets the middle be repeated
        ("1", "+1", " > 0", 249),
        ("true", " == true", "", 250),
        ('"a"', ".lowerAscii()", ' == "a"', 249),
    ],
)
def test_chains_end_where_they_do_in_cel_go(head: str, middle: str, tail: str, deepest: int) -> None:
    assert compile_expression(head + middle * 240 + tail).matches(BARE)
    with pytest.raises(CelSyntaxError, match="max recursion depth exceeded"):
        compile_expression(head + middle * (deepest + 1) + tail)


@pytest.mark.parametrize("joined", [" && ", " || "])
def test_conditions_may_be_as_many_as_one_likes(joined: str) -> None:
    assert compile_expression(joined.join(["true"] * 5000)).matches(BARE)


@pytest.mark.parametrize("opening", ["(", "[", "{1:", "!(", "dyn(", "-(", "has(", "1+(", "true ? (", "[1].all(x, "])
def test_deep_nesting_is_refused_and_not_a_crash(opening: str) -> None:
    with pytest.raises(CelCompileError):
        compile_expression(opening * 30_000)


def doubled(count: int, step: str, last: str) -> str:
    """Names a0, a1, ..., each bound to the step of the one before."""
    binds = "".join(f"cel.bind(a{n + 1}, {step.replace('a', f'a{n}')}, " for n in range(count))
    return f"cel.bind(a0, [1], {binds}{last.replace('z', f'a{count}')}" + ")" * (count + 1)


@pytest.mark.parametrize(
    "text",
    [
        "optional.of(1)" + ".optMap(x, x)" * 100 + ".hasValue()",
        doubled(40, "[a, a]", "z == z"),
        doubled(40, "{1: a, 2: a}", "z == z"),
        doubled(40, "{a: a}", "z.size() == 1"),
        doubled(40, "a + a", "z.size() > 0"),
        doubled(40, "{1: a, 2: a}", "z.foo == 1.5 + 1"),
    ],
)
def test_what_doubles_again_and_again_ends_soon(text: str) -> None:
    _compile_and_ask(text)


def test_the_size_of_an_expression_is_limited() -> None:
    with pytest.raises(CelSyntaxError, match="size: 100001, limit 100000"):
        compile_expression(" " * 100_001)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    _compile_and_ask(text)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_pieces_of_cel_compile_or_are_refused(text: str) -> None:
    _compile_and_ask(text)


def _compile_and_ask(text: str) -> None:
    with suppress(CelCompileError):
        program = compile_expression(text)
        for device in (FULL, BARE):
            with suppress(CelRuntimeError):
                assert program.matches(device) in (True, False)
            program.explain(device)
