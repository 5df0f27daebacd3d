"""Regular expressions: RE2 with the texts of Go. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

FOUND = (
    ("'abc 123'.find('[0-9]+') == '123'", "true"),
    ("'abc 123'.find('xyz') == ''", "true"),
    ("'日本é'.find('\\\\pL$') == 'é'", "true"),
    ("'a\\nb'.find('(?m)^b$') == 'b'", "true"),
    ("'123 abc 456'.findAll('[0-9]+') == ['123', '456']", "true"),
    ("'123 abc 456'.findAll('[0-9]+', 1) == ['123']", "true"),
    ("'123 abc 456'.findAll('[0-9]+', 0) == []", "true"),
    ("'abc'.findAll('xyz') == []", "true"),
    ("'baac'.findAll('a*') == ['', 'aa', '']", "true"),
    ("'ab'.findAll('|a') == ['', '', '']", "true"),
    ("'é日'.findAll('') == ['', '', '']", "true"),
    ("'aab'.findAll('(?U)a+') == ['a', 'a']", "true"),
    ("'abab'.findAll('(a)(b)') == ['ab', 'ab']", "true"),
)

BAD_LITERALS = (
    ("'abc'.find('(') == ''", "does not compile"),
    ("'abc'.findAll('(').size() == 0", "does not compile"),
    ("'abc'.findAll('\\\\C', 1).size() == 0", "does not compile"),
)

BAD_PATTERNS = (
    ("'abc'.find('(' + '') == ''", "error: Illegal regex: error parsing regexp: missing closing ): `(`"),
    ("'abc'.find('a)' + '') == ''", "error: Illegal regex: error parsing regexp: unexpected ): `a)`"),
    ("'abc'.find('[' + '') == ''", "error: Illegal regex: error parsing regexp: missing closing ]: `[`"),
    (
        "'abc'.find('a**' + '') == ''",
        "error: Illegal regex: error parsing regexp: invalid nested repetition operator: `**`",
    ),
    (
        "'abc'.find('*' + '') == ''",
        "error: Illegal regex: error parsing regexp: missing argument to repetition operator: `*`",
    ),
    (
        "'abc'.find('\\\\' + '') == ''",
        "error: Illegal regex: error parsing regexp: trailing backslash at end of expression: ``",
    ),
    ("'abc'.find('\\\\8' + '') == ''", "error: Illegal regex: error parsing regexp: invalid escape sequence: `\\8`"),
    ("'abc'.find('\\\\C' + '') == ''", "error: Illegal regex: error parsing regexp: invalid escape sequence: `\\C`"),
    ("'abc'.find('\\\\Qa\\\\C\\\\Eb' + '') == ''", "true"),
    ("'abc'.find('x{1001}' + '') == ''", "error: Illegal regex: error parsing regexp: invalid repeat count: `{1001}`"),
    (
        "'abc'.find('[[:foo:]]' + '') == ''",
        "error: Illegal regex: error parsing regexp: invalid character class range: `[:foo:]`",
    ),
    (
        "'abc'.find('(?!a)' + '') == ''",
        "error: Illegal regex: error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
    ),
    (
        "'abc'.findAll('(?P<n' + '', 1) == []",
        "error: Illegal regex: error parsing regexp: invalid named capture: `(?P<n`",
    ),
    ("'ab'.find('(?<n>a)' + '') == 'a'", "true"),
)


@pytest.mark.parametrize(("text", "answer"), FOUND)
def test_found(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), BAD_LITERALS)
def test_bad_literals(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), BAD_PATTERNS)
def test_bad_patterns(text: str, answer: str) -> None:
    assert told(text) == answer
