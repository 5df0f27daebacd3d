"""Functions of IP addresses. Zones and IPv4-mapped IPv6 addresses are refused.

Follows k8s.io/apiserver/pkg/cel/library/ip.go; what an address is, stands in `netip`.
"""

from __future__ import annotations

from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_text import quote
from dra.cel.libraries.netip import IPAddress, parse_address
from dra.cel.types import BOOL, INT, IP, STRING

_BROADCAST: Final = 0xFFFFFFFF


def ip_from_text(text: str) -> IPAddress:
    """`ip(text)`; CelRuntimeError if the text is no address, has a zone or maps an IPv4 address."""
    try:
        address = parse_address(text)
    except ValueError as fault:
        raise CelRuntimeError(f"IP Address {quote(text)} parse error during conversion from string: {fault}") from fault
    if address.zone:
        raise CelRuntimeError(f"IP address {quote(text)} with zone value is not allowed")
    if address.is_mapped_ipv4:
        raise CelRuntimeError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _is_ip(text: str) -> bool:
    try:
        ip_from_text(text)
    except CelRuntimeError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(ip_from_text(text)) == text


def _family(address: IPAddress) -> int:
    return 4 if address.bits == 32 else 6


def _is_unspecified(address: IPAddress) -> bool:
    return address.number == 0


def _is_loopback(address: IPAddress) -> bool:
    return address.number >> 24 == 127 if address.bits == 32 else address.number == 1


def _is_link_local_multicast(address: IPAddress) -> bool:
    if address.bits == 32:
        return address.number >> 8 == 0xE00000
    return address.number >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(address: IPAddress) -> bool:
    if address.bits == 32:
        return address.number >> 16 == 0xA9FE
    return address.number >> 118 == 0xFE80 >> 6


def _is_multicast(address: IPAddress) -> bool:
    return address.number >> 28 == 0xE if address.bits == 32 else address.number >> 120 == 0xFF


def _is_global_unicast(address: IPAddress) -> bool:
    return not (
        _is_unspecified(address)
        or (address.bits == 32 and address.number == _BROADCAST)
        or _is_loopback(address)
        or _is_multicast(address)
        or _is_link_local_unicast(address)
    )


def _member(name: str, call: object) -> tuple[Overload, ...]:
    return (Overload(name, (IP,), BOOL, call, member=True),)  # type: ignore[arg-type]


FUNCTIONS: Final[Library] = {
    "ip": (Overload("string_to_ip", (STRING,), IP, ip_from_text),),
    "family": (Overload("ip_family", (IP,), INT, _family, member=True),),
    "ip.isCanonical": (Overload("ip_is_canonical", (STRING,), BOOL, _is_canonical),),
    "isUnspecified": _member("ip_is_unspecified", _is_unspecified),
    "isLoopback": _member("ip_is_loopback", _is_loopback),
    "isLinkLocalMulticast": _member("ip_is_link_local_multicast", _is_link_local_multicast),
    "isLinkLocalUnicast": _member("ip_is_link_local_unicast", _is_link_local_unicast),
    "isGlobalUnicast": _member("ip_is_global_unicast", _is_global_unicast),
    "isIP": (Overload("is_ip", (STRING,), BOOL, _is_ip),),
    "string": (Overload("ip_to_string", (IP,), STRING, str),),
}
