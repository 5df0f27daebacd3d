"""What is declared but cannot be reached, and what is not there. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

DECLARED = (
    ("dyn(1).check('get').allowed()", "error: no such overload: check(int, string)"),
    ("dyn(1).path('/x').check('get').allowed()", "error: no such overload: path(int, string)"),
    (
        "dyn(1).resource('pods').namespace('x').name('y').subresource('z').check('get').allowed()",
        "error: no such overload: resource(int, string)",
    ),
    (
        (
            "dyn(1).serviceAccount('a', "
            "'b').group('g').resource('r').fieldSelector('f').labelSelector('l').check('v').errored()"
        ),
        "error: no such overload: serviceAccount(int, string, string)",
    ),
    ("dyn(1).reason() == '' || dyn(1).error() == ''", "error: no such overload: reason(int)"),
    ("1.check('get').allowed()", "does not compile"),
    ("authorizer.path('/x').check('get').allowed()", "does not compile"),
    ("math.greatest(1, 2) == 2", "does not compile"),
    ("base64.encode(b'x') == ''", "does not compile"),
    ("jsonpatch.escapeKey('x') == ''", "does not compile"),
)


@pytest.mark.parametrize(("text", "answer"), DECLARED)
def test_declared(text: str, answer: str) -> None:
    assert told(text) == answer
