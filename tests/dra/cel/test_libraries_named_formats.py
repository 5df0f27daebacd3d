"""format.named and the formats. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

KNOWN = (
    ("format.named('uuid').hasValue()", "true"),
    ("format.named('email').hasValue()", "false"),
    ("format.dns1123Label() == format.named('dns1123Label').value()", "true"),
    ("format.dns1123Label() == format.dns1035Label()", "false"),
    ("format.dns1123Label().validate('my-name') == optional.none()", "true"),
    ("format.dns1123Subdomain().validate('a.b-c.d').hasValue()", "false"),
    ("format.dns1035Label().validate('1a').hasValue()", "true"),
    ("format.dns1123LabelPrefix().validate('my-label-').hasValue()", "false"),
    ("format.dns1123LabelPrefix().validate('my-label--').hasValue()", "false"),
    ("format.dns1123SubdomainPrefix().validate('a.b-').hasValue()", "false"),
    ("format.dns1035LabelPrefix().validate('a-').hasValue()", "false"),
    ("format.qualifiedName().validate('example.com/MyName').hasValue()", "false"),
    ("format.qualifiedName().validate('a/b/c').hasValue()", "true"),
    ("format.labelValue().validate('').hasValue()", "false"),
    ("format.labelValue().validate('a_b.C').hasValue()", "false"),
    ("format.uri().validate('http://example.com').hasValue()", "false"),
    ("format.uuid().validate('123E4567e89b-12d3-a456-426614174000').hasValue()", "false"),
    ("format.uuid().validate('123e4567-e89b').value() == ['does not match the UUID format']", "true"),
    ("format.byte().validate('aGVsbG8=').hasValue()", "false"),
    ("format.byte().validate('aGVsbG8').value() == ['invalid base64']", "true"),
    ("format.date().validate('2020-02-29').hasValue()", "false"),
    ("format.date().validate('2021-02-29').value() == ['invalid date']", "true"),
    ("format.datetime().validate('2021-01-01t23:59:59.5+01:00').hasValue()", "false"),
    ("format.datetime().validate('2021-01-01T24:00:00Z').value() == ['invalid datetime']", "true"),
    ("format.dns1123Label().validate('a.b').value() == ['must not contain dots']", "true"),
    (
        (
            "format.dns1123Label().validate('a-').value()[0].startsWith(\"a lowercase RFC 1123 label must "
            "consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
            "character (e.g. 'my-name',  or '123-abc', regex used for validation is\")"
        ),
        "true",
    ),
    ("format.qualifiedName().validate('/').value()[1] == 'name part must be non-empty'", "true"),
    ("format.uri().validate('x').value() == ['parse \"x\": invalid URI for request']", "true"),
    (
        (
            "lists.range(64).map(i, 'a').join().size() == 64 && "
            "format.dns1123Label().validate(lists.range(64).map(i, 'a').join()).value() == ['must be no more "
            "than 63 characters']"
        ),
        "true",
    ),
    (
        "format.labelValue().validate(lists.range(64).map(i, 'a').join()).value() == ['must be no more than 63 bytes']",
        "true",
    ),
)


@pytest.mark.parametrize(("text", "answer"), KNOWN)
def test_known(text: str, answer: str) -> None:
    assert told(text) == answer
