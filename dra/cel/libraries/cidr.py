"""Functions of networks in CIDR notation. IPv4-mapped IPv6 addresses are refused.

Follows k8s.io/apiserver/pkg/cel/library/cidr.go; what a prefix is, stands in `netip`.
"""

from __future__ import annotations

from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_text import quote
from dra.cel.libraries.ip import ip_from_text
from dra.cel.libraries.netip import IPAddress, Prefix, parse_prefix
from dra.cel.types import BOOL, CIDR, INT, IP, STRING

_PARSE_ERROR: Final = "network address parse error during conversion from string: "


def _cidr(text: str) -> Prefix:
    try:
        prefix = parse_prefix(text)
    except ValueError as fault:
        raise CelRuntimeError(f"{_PARSE_ERROR}{_PARSE_ERROR}{fault}") from fault  # twice, as cidr.go says it
    if prefix.address.is_mapped_ipv4:
        raise CelRuntimeError(f"{_PARSE_ERROR}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return prefix


def _is_cidr(text: str) -> bool:
    try:
        _cidr(text)
    except CelRuntimeError:
        return False
    return True


def _contains_ip(prefix: Prefix, address: IPAddress) -> bool:
    return prefix.contains(address)


def _contains_ip_text(prefix: Prefix, text: str) -> bool:
    try:
        return prefix.contains(ip_from_text(text))
    except CelRuntimeError as fault:  # cidr.go loses the text of the parse error
        raise CelRuntimeError("no such overload") from fault


def _contains_cidr(prefix: Prefix, other: Prefix) -> bool:
    return prefix.contains(other.address) and prefix.length <= other.length


def _contains_cidr_text(prefix: Prefix, text: str) -> bool:
    return _contains_cidr(prefix, _cidr(text))


def _ip(prefix: Prefix) -> IPAddress:
    return prefix.address


def _masked(prefix: Prefix) -> Prefix:
    return prefix.masked()


def _prefix_length(prefix: Prefix) -> int:
    return prefix.length


FUNCTIONS: Final[Library] = {
    "cidr": (Overload("string_to_cidr", (STRING,), CIDR, _cidr),),
    "containsIP": (
        Overload("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip_text, member=True),
        Overload("cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip, member=True),
    ),
    "containsCIDR": (
        Overload("cidr_contains_cidr_string", (CIDR, STRING), BOOL, _contains_cidr_text, member=True),
        Overload("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr, member=True),
    ),
    "ip": (Overload("cidr_ip", (CIDR,), IP, _ip, member=True),),
    "prefixLength": (Overload("cidr_prefix_length", (CIDR,), INT, _prefix_length, member=True),),
    "masked": (Overload("cidr_masked", (CIDR,), CIDR, _masked, member=True),),
    "isCIDR": (Overload("is_cidr", (STRING,), BOOL, _is_cidr),),
    "string": (Overload("cidr_to_string", (CIDR,), STRING, str),),
}
