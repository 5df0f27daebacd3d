"""URLs. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

PARTS = (
    ("url('https://user:pass@example.com:80/path?query=val#fragment').getScheme() == 'https'", "true"),
    ("url('https://user:pass@example.com:80/p').getHost() == 'example.com:80'", "true"),
    ("url('https://example.com:80/').getHostname() == 'example.com'", "true"),
    ("url('https://[::1]:80/').getHost() == '[::1]:80'", "true"),
    ("url('https://[::1]:80/').getHostname() == '::1'", "true"),
    ("url('https://[::1]:80/').getPort() == '80'", "true"),
    ("url('https://example.com/').getPort() == ''", "true"),
    ("url('https://example.com:/').getPort() == ''", "true"),
    ("url('foo://a:1,b:2/').getPort() == '2'", "true"),
    ("url('/path').getScheme() == ''", "true"),
    ("url('/path').getHost() == ''", "true"),
    ("url('HTTP://Ex/').getScheme() == 'http'", "true"),
    ("url('mailto:x@y').getEscapedPath() == ''", "true"),
    ("url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'", "true"),
    ("url('http://h/a%2fb').getEscapedPath() == '/a%2fb'", "true"),
    ("url('http://h/[a]{b}').getEscapedPath() == '/%5Ba%5D%7Bb%7D'", "true"),
    ("url('http://h/é').getEscapedPath() == '/%C3%A9'", "true"),
    ("url('*').getEscapedPath() == '*'", "true"),
    ("url('http://h/p?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}", "true"),
    ("url('http://h/p?a+b=c%20d&x;y=1&%zz=1&&n').getQuery() == {'a b': ['c d'], 'n': ['']}", "true"),
    ("url('http://h/p?').getQuery() == {}", "true"),
    ("url('HTTP://h/a b') == url('http://h/a%20b')", "true"),
    ("url('http://h') == url('http://h/')", "false"),
    ("url('http://h?') == url('http://h')", "false"),
    ("isURL('https://a:b:c/')", "false"),
    ("isURL('../relative')", "false"),
    ("isURL('//host/path')", "true"),
    ("isURL('')", "false"),
    ("isURL('http://h/\\u0001')", "false"),
    ("isURL('http://[1.2.3.4]/')", "false"),
    ("isURL('http://[fe80::1%25en0]/')", "true"),
)

REFUSED = (
    (
        "url('../relative').getHost() == ''",
        'error: URL parse error during conversion from string: parse "../relative": invalid URI for request',
    ),
    ("url('').getHost() == ''", 'error: URL parse error during conversion from string: parse "": empty url'),
    (
        "url(':x').getHost() == ''",
        'error: URL parse error during conversion from string: parse ":x": missing protocol scheme',
    ),
    (
        "url('https://a:b:c/').getHost() == ''",
        'error: URL parse error during conversion from string: parse "https://a:b:c/": invalid port ":b:c" after host',
    ),
    (
        "url('http://a b/').getHost() == ''",
        'error: URL parse error during conversion from string: parse "http://a b/": invalid character " " in host name',
    ),
    (
        "url('http://%41/').getHost() == ''",
        'error: URL parse error during conversion from string: parse "http://%41/": invalid URL escape "%41"',
    ),
    (
        "url('http://h/%zz').getHost() == ''",
        'error: URL parse error during conversion from string: parse "http://h/%zz": invalid URL escape "%zz"',
    ),
    (
        "url('http://h/\\u0001').getHost() == ''",
        (
            'error: URL parse error during conversion from string: parse "http://h/\\x01": net/url: invalid '
            "control character in URL"
        ),
    ),
    (
        "url('http://[::1/').getHost() == ''",
        "error: URL parse error during conversion from string: parse \"http://[::1/\": missing ']' in host",
    ),
    (
        "url('http://[::1]x/').getHost() == ''",
        'error: URL parse error during conversion from string: parse "http://[::1]x/": invalid port "x" after host',
    ),
    (
        "url('http://a[::1]/').getHost() == ''",
        'error: URL parse error during conversion from string: parse "http://a[::1]/": invalid IP-literal',
    ),
    (
        "url('http://[1.2.3.4]/').getHost() == ''",
        'error: URL parse error during conversion from string: parse "http://[1.2.3.4]/": invalid IP-literal',
    ),
    (
        "url('http://[x]/').getHost() == ''",
        (
            'error: URL parse error during conversion from string: parse "http://[x]/": invalid host: '
            'ParseAddr("x"): unable to parse IP'
        ),
    ),
    (
        "url('http://u^@h/').getHost() == ''",
        'error: URL parse error during conversion from string: parse "http://u^@h/": net/url: invalid userinfo',
    ),
)


@pytest.mark.parametrize(("text", "answer"), PARTS)
def test_parts(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), REFUSED)
def test_refused(text: str, answer: str) -> None:
    assert told(text) == answer
