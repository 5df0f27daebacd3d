"""IP addresses and prefixes as Go reads and prints them. Knows no CEL functions.

Follows Go's net/netip (`ParseAddr`, `ParsePrefix`, `Addr.String`). Errors are ValueError with Go's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from dra.cel import types
from dra.cel.libraries.go_text import from_bytes, quote
from dra.cel.types import Type
from dra.cel.values import Opaque

_HEX: Final = re.compile(rb"[0-9a-fA-F]*")
_BITS: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_FIELDS: Final = 8  # 16 bits each


@dataclass(frozen=True, slots=True)
class IPAddress(Opaque):
    """An address: its number, and 32 or 128 bits."""

    CEL_TYPE: ClassVar[Type] = types.IP
    number: int
    bits: int
    zone: str = ""

    def __str__(self) -> str:
        if self.bits == 32:
            return ".".join(map(str, self.number.to_bytes(4)))
        return _ipv6_text([self.number >> 16 * (7 - index) & 0xFFFF for index in range(_FIELDS)])

    @property
    def is_mapped_ipv4(self) -> bool:
        """Whether it is an IPv4 address written as ::ffff:a.b.c.d."""
        return self.bits == 128 and self.number >> 32 == 0xFFFF


@dataclass(frozen=True, slots=True)
class Prefix(Opaque):
    """An address and how many of its leading bits name the network."""

    CEL_TYPE: ClassVar[Type] = types.CIDR
    address: IPAddress
    length: int

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    def masked(self) -> Prefix:
        """The prefix with every bit behind its length cleared."""
        rest = self.address.bits - self.length
        return Prefix(IPAddress(self.address.number >> rest << rest, self.address.bits), self.length)

    def contains(self, address: IPAddress) -> bool:
        """Whether the address is of the same family and within."""
        rest = self.address.bits - self.length
        return self.address.bits == address.bits and self.address.number >> rest == address.number >> rest


def _ipv6_text(fields: list[int]) -> str:
    """Hexadecimal fields; the first longest run of at least two zeros becomes ::."""
    run_start, run_end = 0, 0
    for start in range(_FIELDS):
        end = start
        while end < _FIELDS and fields[end] == 0:
            end += 1
        if end - start >= 2 and end - start > run_end - run_start:
            run_start, run_end = start, end
    if run_end == 0:
        return ":".join(f"{field:x}" for field in fields)
    before, after = fields[:run_start], fields[run_end:]
    return ":".join(f"{field:x}" for field in before) + "::" + ":".join(f"{field:x}" for field in after)


def parse_address(text: str) -> IPAddress:
    """The address; ValueError with Go's text."""
    return parse_address_bytes(text.encode("utf-8", "surrogatepass"))


def parse_address_bytes(raw: bytes) -> IPAddress:
    """The address of a Go string that need not be UTF-8; ValueError with Go's text."""
    kind = next((byte for byte in raw if byte in b".:%"), 0)
    if kind == ord("."):
        return IPAddress(int.from_bytes(_ipv4(raw, raw)), 32)
    if kind == ord(":"):
        return _ipv6(raw)
    raise _refused(raw, "missing IPv6 address" if kind else "unable to parse IP")


def _refused(raw: bytes, reason: str, at: bytes = b"") -> ValueError:
    where = f" (at {quote(from_bytes(at))})" if at else ""
    return ValueError(f"ParseAddr({quote(from_bytes(raw))}): {reason}{where}")


def _ipv4(whole: bytes, raw: bytes) -> bytes:
    """Four fields of `raw`, which stands at the end of `whole`."""
    fields: list[int] = []
    value = digits = 0
    for index, byte in enumerate(raw):
        if 0x30 <= byte <= 0x39:
            if digits == 1 and value == 0:
                raise _refused(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + byte - 0x30, digits + 1
            if value > 255:
                raise _refused(whole, "IPv4 field has value >255")
        elif byte != ord("."):
            raise _refused(whole, "unexpected character", raw[index:])
        else:
            if digits == 0 or index == len(raw) - 1:
                raise _refused(whole, "IPv4 field must have at least one digit", raw[index:])
            if len(fields) == 3:
                raise _refused(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
    if len(fields) < 3:
        raise _refused(whole, "IPv4 address too short")
    return bytes([*fields, value])


def _ipv6(whole: bytes) -> IPAddress:
    raw, percent, zone = whole.partition(b"%")
    if percent and not zone:
        raise _refused(whole, "zone must be a non-empty string")
    leading = raw.startswith(b"::")
    parsed, ellipsis, rest = _ipv6_fields(whole, raw[2:] if leading else raw, 0 if leading else -1)
    if rest:
        raise _refused(whole, "trailing garbage after address", rest)
    if len(parsed) < 16:
        if ellipsis < 0:
            raise _refused(whole, "address string too short")
        parsed = parsed[:ellipsis] + bytes(16 - len(parsed)) + parsed[ellipsis:]
    elif ellipsis >= 0:
        raise _refused(whole, "the :: must expand to at least one field of zeros")
    return IPAddress(int.from_bytes(parsed), 128, from_bytes(zone))


def _ipv6_fields(whole: bytes, rest: bytes, ellipsis: int) -> tuple[bytes, int, bytes]:
    """The bytes of all fields, where the :: stands among them (-1: nowhere), and what was not read."""
    parsed = b""
    while rest and len(parsed) < 16:
        field = _hex_field(whole, rest)
        if rest[len(field) : len(field) + 1] == b".":
            _check_embedded_ipv4(whole, rest, len(parsed), ellipsis)
            return parsed + _ipv4(whole, rest), ellipsis, b""
        parsed += int(field, 16).to_bytes(2)
        rest = rest[len(field) :]
        if not rest:
            break
        if rest[:1] != b":":
            raise _refused(whole, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _refused(whole, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[:1] == b":":
            if ellipsis >= 0:
                raise _refused(whole, "multiple :: in address", rest)
            ellipsis, rest = len(parsed), rest[1:]
    return parsed, ellipsis, rest


def _hex_field(whole: bytes, rest: bytes) -> bytes:
    match = _HEX.match(rest)
    field = match[0] if match else b""
    if len(field) > 4:
        raise _refused(whole, "each group must have 4 or less digits", rest)
    if not field:
        raise _refused(whole, "each colon-separated field must have at least one digit", rest)
    return field


def _check_embedded_ipv4(whole: bytes, rest: bytes, parsed: int, ellipsis: int) -> None:
    if ellipsis < 0 and parsed != 12:
        raise _refused(whole, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if parsed > 12:
        raise _refused(whole, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)


def parse_prefix(text: str) -> Prefix:
    """The prefix; ValueError with Go's text."""
    head, slash, bits = text.rpartition("/")
    if not slash:
        raise _refused_prefix(text, "no '/'")
    try:
        address = parse_address(head)
    except ValueError as fault:
        raise _refused_prefix(text, str(fault)) from fault
    if address.zone:
        raise _refused_prefix(text, "IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(bits):
        raise _refused_prefix(text, f"bad bits after slash: {quote(bits)}")
    if int(bits) > address.bits:
        raise _refused_prefix(text, "prefix length out of range")
    return Prefix(address, int(bits))


def _refused_prefix(text: str, reason: str) -> ValueError:
    return ValueError(f"netip.ParsePrefix({quote(text)}): {reason}")
