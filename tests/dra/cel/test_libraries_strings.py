"""Functions of strings. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

POSITIONS = (
    ("'tacocat'.charAt(3) == 'o'", "true"),
    ("'taco'.charAt(4) == ''", "true"),
    ("'taco'.charAt(5) == ''", "error: index out of range: 5"),
    ("'taco'.charAt(-1) == ''", "error: index out of range: -1"),
    ("'日本𝄞'.charAt(2) == '𝄞'", "true"),
    ("'hello mellow'.indexOf('ello') == 1", "true"),
    ("'hello mellow'.indexOf('ello', 2) == 7", "true"),
    ("'hello'.indexOf('') == 0", "true"),
    ("'hello'.indexOf('', 9) == 5", "true"),
    ("'hello'.indexOf('x') == -1", "true"),
    ("'hello'.indexOf('lo', 9) == -1", "true"),
    ("'hello'.indexOf('l', -1) == 2", "error: index out of range: -1"),
    ("'日本日'.indexOf('日', 1) == 2", "true"),
    ("'hello mellow'.lastIndexOf('ello') == 7", "true"),
    ("'hello mellow'.lastIndexOf('ello', 6) == 1", "true"),
    ("'hello mellow'.lastIndexOf('ello', 7) == 7", "true"),
    ("'hello'.lastIndexOf('') == 5", "true"),
    ("'hello'.lastIndexOf('', 9) == 5", "true"),
    ("'hello'.lastIndexOf('o', 5) == -1", "true"),
    ("'hello'.lastIndexOf('o', 9) == -1", "true"),
    ("'hello'.lastIndexOf('l', -1) == 2", "error: index out of range: -1"),
    ("''.lastIndexOf('a') == -1", "true"),
    ("'tacocat'.substring(4) == 'cat'", "true"),
    ("'tacocat'.substring(0, 4) == 'taco'", "true"),
    ("'tacocat'.substring(7) == ''", "true"),
    ("'tacocat'.substring(8) == ''", "error: index out of range: 8"),
    ("'tacocat'.substring(-1) == ''", "error: index out of range: -1"),
    ("'tacocat'.substring(2, 1) == ''", "error: invalid substring range. start: 2, end: 1"),
    ("'tacocat'.substring(2, 8) == ''", "error: index out of range: 8"),
    ("'tacocat'.substring(-1, 8) == ''", "error: index out of range: -1"),
)

CHANGES = (
    ("'TacoCÆt Xii'.lowerAscii() == 'tacocÆt xii'", "true"),
    ("'TacoCÆt Xiiß'.upperAscii() == 'TACOCÆT XIIß'", "true"),
    ("'İK'.lowerAscii() == 'İK'", "false"),
    ("'hello hello'.replace('he', 'we') == 'wello wello'", "true"),
    ("'hello hello'.replace('he', 'we', 1) == 'wello hello'", "true"),
    ("'hello hello'.replace('he', 'we', 0) == 'hello hello'", "true"),
    ("'hello hello'.replace('he', 'we', -7) == 'wello wello'", "true"),
    ("'ab'.replace('', '_') == '_a_b_'", "true"),
    ("'ab'.replace('', '_', 2) == '_a_b'", "true"),
    ("'a,b,c'.split(',') == ['a', 'b', 'c']", "true"),
    ("'a,b,c'.split(',', 2) == ['a', 'b,c']", "true"),
    ("'a,b,c'.split(',', 1) == ['a,b,c']", "true"),
    ("'a,b,c'.split(',', 0) == []", "true"),
    ("'a,b,c'.split(',', -3) == ['a', 'b', 'c']", "true"),
    ("'a日c'.split('') == ['a', '日', 'c']", "true"),
    ("'a日c'.split('', 2) == ['a', '日c']", "true"),
    ("''.split('') == []", "true"),
    ("''.split(',') == ['']", "true"),
    ("'  \\ttrim\\n    '.trim() == 'trim'", "true"),
    ("'\\u0085\\u00a0\\u2003x\\u3000\\u2028'.trim() == 'x'", "true"),
    ("'\\u200bx\\u001c'.trim() == '\\u200bx\\u001c'", "true"),
    ("strings.quote('a\"\\\\\\n\\tb\\u2028é') == '\"a\\\\\"\\\\\\\\\\\\n\\\\tb\\u2028é\"'", "true"),
    ("['a', 'b'].join() == 'ab'", "true"),
    ("['a', 'b'].join('-') == 'a-b'", "true"),
    ("[].join('-') == ''", "true"),
    ("'gums'.reverse() == 'smug'", "does not compile"),
)


@pytest.mark.parametrize(("text", "answer"), POSITIONS)
def test_positions(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), CHANGES)
def test_changes(text: str, answer: str) -> None:
    assert told(text) == answer


def test_join_of_what_is_no_text() -> None:
    assert told("[dyn('a'), dyn(1)].join() == ''").startswith("error: join: invalid input: ")
