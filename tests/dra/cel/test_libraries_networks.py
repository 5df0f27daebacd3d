"""IP addresses and networks in CIDR notation. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

ADDRESSES = (
    ("ip('127.0.0.1').family() == 4", "true"),
    ("ip('::1').family() == 6", "true"),
    ("string(ip('2001:DB8:0:0:1:0:0:1')) == '2001:db8::1:0:0:1'", "true"),
    ("string(ip('64:ff9b::1.2.3.4')) == '64:ff9b::102:304'", "true"),
    ("ip('1::') == ip('1:0:0:0:0:0:0:0')", "true"),
    ("isIP('1.2.3.4')", "true"),
    ("isIP('01.2.3.4')", "false"),
    ("isIP('1.2.3')", "false"),
    ("isIP('1.2.3.4 ')", "false"),
    ("isIP('::ffff:1.2.3.4')", "false"),
    ("isIP('fe80::1%eth0')", "false"),
    ("isIP('1:2:3:4:5:6:7::8')", "false"),
    ("ip.isCanonical('2001:db8::abcd')", "true"),
    ("ip.isCanonical('2001:DB8::ABCD')", "false"),
    (
        "ip.isCanonical('x')",
        'error: IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
    ),
    ("ip('0.0.0.0').isUnspecified()", "true"),
    ("ip('127.9.0.1').isLoopback()", "true"),
    ("ip('224.0.0.1').isLinkLocalMulticast()", "true"),
    ("ip('224.0.1.1').isLinkLocalMulticast()", "false"),
    ("ip('ff12::1').isLinkLocalMulticast()", "true"),
    ("ip('169.254.1.1').isLinkLocalUnicast()", "true"),
    ("ip('febf::1').isLinkLocalUnicast()", "true"),
    ("ip('fec0::1').isLinkLocalUnicast()", "false"),
    ("ip('10.0.0.1').isGlobalUnicast()", "true"),
    ("ip('255.255.255.255').isGlobalUnicast()", "false"),
    ("ip('ff00::1').isGlobalUnicast()", "false"),
)

REFUSED_ADDRESSES = (
    (
        "ip('x').family() == 4",
        'error: IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
    ),
    (
        "ip('%').family() == 4",
        'error: IP Address "%" parse error during conversion from string: ParseAddr("%"): missing IPv6 address',
    ),
    (
        "ip('1.2.3').family() == 4",
        (
            'error: IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 '
            "address too short"
        ),
    ),
    (
        "ip('1.2.3.4.5').family() == 4",
        (
            'error: IP Address "1.2.3.4.5" parse error during conversion from string: ParseAddr("1.2.3.4.5"): '
            "IPv4 address too long"
        ),
    ),
    (
        "ip('1..3.4').family() == 4",
        (
            'error: IP Address "1..3.4" parse error during conversion from string: ParseAddr("1..3.4"): IPv4 '
            'field must have at least one digit (at ".3.4")'
        ),
    ),
    (
        "ip('1.2.3.256').family() == 4",
        (
            'error: IP Address "1.2.3.256" parse error during conversion from string: ParseAddr("1.2.3.256"): '
            "IPv4 field has value >255"
        ),
    ),
    (
        "ip('01.2.3.4').family() == 4",
        (
            'error: IP Address "01.2.3.4" parse error during conversion from string: ParseAddr("01.2.3.4"): '
            "IPv4 field has octet with leading zero"
        ),
    ),
    (
        "ip('1.2.3.x').family() == 4",
        (
            'error: IP Address "1.2.3.x" parse error during conversion from string: ParseAddr("1.2.3.x"): '
            'unexpected character (at "x")'
        ),
    ),
    ("ip('::ffff:1.2.3.4').family() == 6", 'error: IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
    ("ip('fe80::1%eth0').family() == 6", 'error: IP address "fe80::1%eth0" with zone value is not allowed'),
    (
        "ip('fe80::1%').family() == 6",
        (
            'error: IP Address "fe80::1%" parse error during conversion from string: ParseAddr("fe80::1%"): '
            "zone must be a non-empty string"
        ),
    ),
    (
        "ip('1:2').family() == 6",
        'error: IP Address "1:2" parse error during conversion from string: ParseAddr("1:2"): address string too short',
    ),
    (
        "ip('12345::').family() == 6",
        (
            'error: IP Address "12345::" parse error during conversion from string: ParseAddr("12345::"): each '
            'group must have 4 or less digits (at "12345::")'
        ),
    ),
    (
        "ip(':1').family() == 6",
        (
            'error: IP Address ":1" parse error during conversion from string: ParseAddr(":1"): each '
            'colon-separated field must have at least one digit (at ":1")'
        ),
    ),
    (
        "ip('1:').family() == 6",
        (
            'error: IP Address "1:" parse error during conversion from string: ParseAddr("1:"): colon must be '
            'followed by more characters (at ":")'
        ),
    ),
    (
        "ip('1::2::3').family() == 6",
        (
            'error: IP Address "1::2::3" parse error during conversion from string: ParseAddr("1::2::3"): '
            'multiple :: in address (at ":3")'
        ),
    ),
    (
        "ip('1:2:3:4:5:6:7:8:9').family() == 6",
        (
            'error: IP Address "1:2:3:4:5:6:7:8:9" parse error during conversion from string: '
            'ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after address (at "9")'
        ),
    ),
    (
        "ip('1:2:3:4:5:6:7::8').family() == 6",
        (
            'error: IP Address "1:2:3:4:5:6:7::8" parse error during conversion from string: '
            'ParseAddr("1:2:3:4:5:6:7::8"): the :: must expand to at least one field of zeros'
        ),
    ),
    (
        "ip('1:1.2.3.4').family() == 6",
        (
            'error: IP Address "1:1.2.3.4" parse error during conversion from string: ParseAddr("1:1.2.3.4"): '
            'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'
        ),
    ),
    (
        "ip('1:2:3:4:5:6:7::1.2.3.4').family() == 6",
        (
            'error: IP Address "1:2:3:4:5:6:7::1.2.3.4" parse error during conversion from string: '
            'ParseAddr("1:2:3:4:5:6:7::1.2.3.4"): too many hex fields to fit an embedded IPv4 at the end of '
            'the address (at "1.2.3.4")'
        ),
    ),
    (
        "ip('é:').family() == 6",
        (
            'error: IP Address "é:" parse error during conversion from string: ParseAddr("é:"): each '
            'colon-separated field must have at least one digit (at "é:")'
        ),
    ),
)

NETWORKS = (
    ("cidr('192.168.0.0/16').prefixLength() == 16", "true"),
    ("string(cidr('192.168.1.9/16')) == '192.168.1.9/16'", "true"),
    ("cidr('192.168.1.9/16').masked() == cidr('192.168.0.0/16')", "true"),
    ("cidr('192.168.1.9/16') == cidr('192.168.0.0/16')", "false"),
    ("cidr('2001:db8::9/33').ip() == ip('2001:db8::9')", "true"),
    ("cidr('10.0.0.0/8').containsIP('10.9.9.9')", "true"),
    ("cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))", "false"),
    ("cidr('0.0.0.0/0').containsIP('::1')", "false"),
    ("cidr('10.0.0.0/8').containsIP('x')", "error: no such overload"),
    ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "true"),
    ("cidr('10.0.0.0/8').containsCIDR(cidr('0.0.0.0/0'))", "false"),
    (
        "cidr('10.0.0.0/8').containsCIDR('x')",
        (
            "error: network address parse error during conversion from string: network address parse error "
            "during conversion from string: netip.ParsePrefix(\"x\"): no '/'"
        ),
    ),
    ("isCIDR('::1/128')", "true"),
    ("isCIDR('::1/129')", "false"),
    ("isCIDR('1.2.3.4/08')", "false"),
    ("isCIDR('1.2.3.4/+8')", "false"),
    ("isCIDR('1.2.3.4')", "false"),
    ("isCIDR('::ffff:1.2.3.4/96')", "false"),
    (
        "cidr('1.2.3.4').prefixLength() == 0",
        (
            "error: network address parse error during conversion from string: network address parse error "
            "during conversion from string: netip.ParsePrefix(\"1.2.3.4\"): no '/'"
        ),
    ),
    (
        "cidr('1.2.3.4/33').prefixLength() == 0",
        (
            "error: network address parse error during conversion from string: network address parse error "
            'during conversion from string: netip.ParsePrefix("1.2.3.4/33"): prefix length out of range'
        ),
    ),
    (
        "cidr('1.2.3.4/x').prefixLength() == 0",
        (
            "error: network address parse error during conversion from string: network address parse error "
            'during conversion from string: netip.ParsePrefix("1.2.3.4/x"): bad bits after slash: "x"'
        ),
    ),
    (
        "cidr('fe80::1%a/8').prefixLength() == 0",
        (
            "error: network address parse error during conversion from string: network address parse error "
            'during conversion from string: netip.ParsePrefix("fe80::1%a/8"): IPv6 zones cannot be present in '
            "a prefix"
        ),
    ),
    (
        "cidr('::ffff:1.2.3.4/96').prefixLength() == 0",
        (
            "error: network address parse error during conversion from string: IPv4-mapped IPv6 address "
            '"::ffff:1.2.3.4/96" is not allowed'
        ),
    ),
)


@pytest.mark.parametrize(("text", "answer"), ADDRESSES)
def test_addresses(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), REFUSED_ADDRESSES)
def test_refused_addresses(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), NETWORKS)
def test_networks(text: str, answer: str) -> None:
    assert told(text) == answer
