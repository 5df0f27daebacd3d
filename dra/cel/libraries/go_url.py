"""URLs as Go reads and prints them. Knows no CEL functions.

Works on bytes, as Go does: escapes may spell what is no UTF-8. Follows Go's net/url (`Parse`, `ParseRequestURI`,
`URL.String`, `URL.Query`). Errors are ValueError with Go's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import ClassVar, Final

from dra.cel import types
from dra.cel.libraries.go_text import from_bytes, quote
from dra.cel.libraries.netip import parse_address_bytes
from dra.cel.types import Type
from dra.cel.values import Opaque

_WORD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_SCHEME: Final = re.compile(rb"([a-zA-Z][a-zA-Z0-9+.-]*):")
_PORT: Final = re.compile(rb"(:[0-9]*)?")
_ESCAPE: Final = re.compile(rb"%[0-9a-fA-F]{2}")
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_ALLOWED_ENCODED: Final = b"!$&'()*+,;=:@[]%"
_MOST_PARAMETERS: Final = 10_000


class Part(Enum):
    """A part of a URL: each has bytes of its own that need no escape in it."""

    PATH = auto()
    HOST = auto()
    ZONE = auto()
    USER = auto()
    QUERY = auto()
    FRAGMENT = auto()

    @property
    def plain(self) -> frozenset[int]:
        """The bytes that need no escape."""
        return _PLAIN[self]


_IN_HOST: Final = b"!\"$&'()*+,:;<=>[]"
_PLAIN: Final = {
    part: frozenset(_WORD + more)
    for part, more in {
        Part.PATH: b"$&+,/:;=@",
        Part.HOST: _IN_HOST,
        Part.ZONE: _IN_HOST,
        Part.USER: b"$&+,;=",
        Part.QUERY: b"",
        Part.FRAGMENT: b"!$&()*+,/:;=?@",
    }.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Url(Opaque):
    """A parsed URL, equal to others that print alike. `path` and `fragment` are unescaped, the raw ones as written."""

    CEL_TYPE: ClassVar[Type] = types.URL
    scheme: bytes = b""
    opaque: bytes = b""
    user: tuple[bytes, ...] | None = None  # name, or name and password
    host: bytes = b""
    path: bytes = b""
    raw_path: bytes = b""
    fragment: bytes = b""
    raw_fragment: bytes = b""
    query: bytes | None = None
    omits_host: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash(bytes(self))

    def __bytes__(self) -> bytes:
        text = self.scheme + b":" if self.scheme else b""
        text += self.opaque or self._authority() + self._path_text(bare=not text)
        if self.query is not None:
            text += b"?" + self.query
        if self.fragment:
            text += b"#" + _as_written(self.raw_fragment, self.fragment, Part.FRAGMENT)
        return text

    def _authority(self) -> bytes:
        if not (self.scheme or self.host or self.user) or (self.omits_host and not self.host and not self.user):
            return b""
        slashes = b"//" if self.host or self.path or self.user is not None else b""
        user = b":".join(escape(part, Part.USER) for part in self.user) + b"@" if self.user is not None else b""
        return slashes + user + escape(self.host, Part.HOST)

    def _path_text(self, *, bare: bool) -> bytes:
        path = self.escaped_path
        if path and not path.startswith(b"/") and self.host:
            return b"/" + path
        if bare and not self.host and b":" in path.partition(b"/")[0]:
            return b"./" + path
        return path

    @property
    def escaped_path(self) -> bytes:
        """The path as it was written, if that is a valid way to write it."""
        return _as_written(self.raw_path, self.path, Part.PATH)

    @property
    def hostname(self) -> bytes:
        """The host without port and brackets."""
        host = self._split_port()[0]
        return host[1:-1] if host.startswith(b"[") and host.endswith(b"]") else host

    @property
    def port(self) -> bytes:
        """The digits after the host's last colon."""
        return self._split_port()[1]

    def _split_port(self) -> tuple[bytes, bytes]:
        host, colon, port = self.host.rpartition(b":")
        return (host, port) if colon and _PORT.fullmatch(colon + port) else (self.host, b"")


def _as_written(raw: bytes, plain: bytes, part: Part) -> bytes:
    if raw and all(byte in _ALLOWED_ENCODED or byte in part.plain for byte in raw):
        return raw
    return plain if plain == b"*" and part is Part.PATH else escape(plain, part)


def escape(raw: bytes, part: Part) -> bytes:
    """The bytes with %XX for those that may not stand in the part."""
    return b"".join(bytes((byte,)) if byte in part.plain else b"%%%02X" % byte for byte in raw)


def unescape(raw: bytes, part: Part) -> bytes:
    """The bytes with %XX replaced; ValueError for broken escapes and for what a host may not hold."""
    for index, byte in enumerate(raw):
        if byte == ord("%"):
            _check_escape(raw[index : index + 3], part)
        elif part in (Part.HOST, Part.ZONE) and byte < 0x80 and byte not in part.plain:
            raise ValueError(f"invalid character {quote(chr(byte))} in host name")
    if part is Part.QUERY:
        raw = raw.replace(b"+", b" ")
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[0][1:].decode()), raw)


def _check_escape(sequence: bytes, part: Part) -> None:
    refused = ValueError(f"invalid URL escape {quote(from_bytes(sequence))}")
    if not _ESCAPE.fullmatch(sequence):
        raise refused
    value = int(sequence[1:], 16)
    if part is Part.HOST and value < 0x80 and sequence != b"%25":
        raise refused
    if part is Part.ZONE and sequence != b"%25" and value != ord(" ") and value not in Part.HOST.plain:
        raise refused


def parse_request_uri(text: str) -> Url:
    """An absolute URI or an absolute path, where # does not begin a fragment; ValueError with Go's text."""
    return _parse(text.encode("utf-8", "surrogatepass"), via_request=True)


def parse_url(text: str) -> Url:
    """Any URL, with its fragment; ValueError with Go's text."""
    raw, _, fragment = text.encode("utf-8", "surrogatepass").partition(b"#")
    url = _parse(raw, via_request=False)
    if not fragment:
        return url
    try:
        return _with_fragment(url, fragment)
    except ValueError as fault:
        raise _refused(text.encode("utf-8", "surrogatepass"), str(fault)) from fault


def _with_fragment(url: Url, raw: bytes) -> Url:
    fragment = unescape(raw, Part.FRAGMENT)
    raw_fragment = b"" if escape(fragment, Part.FRAGMENT) == raw else raw
    return replace(url, fragment=fragment, raw_fragment=raw_fragment)


def _refused(raw: bytes, reason: str) -> ValueError:
    return ValueError(f"parse {quote(from_bytes(raw))}: {reason}")


def _parse(raw: bytes, *, via_request: bool) -> Url:
    try:
        return _parsed(raw, via_request=via_request)
    except ValueError as fault:
        raise _refused(raw, str(fault)) from fault


def _parsed(raw: bytes, *, via_request: bool) -> Url:
    if _CONTROL.search(raw):
        raise ValueError("net/url: invalid control character in URL")
    if not raw and via_request:
        raise ValueError("empty url")
    if raw == b"*":
        return Url(path=b"*")
    scheme, rest = _split_scheme(raw)
    rest, question, query = rest.partition(b"?")
    found = query if question else None
    if not rest.startswith(b"/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=found)
        _check_relative(rest, via_request=via_request)
    return _hierarchical(scheme, rest, found, via_request=via_request)


def _split_scheme(raw: bytes) -> tuple[bytes, bytes]:
    if raw.startswith(b":"):
        raise ValueError("missing protocol scheme")
    match = _SCHEME.match(raw)
    return (match[1].lower(), raw[match.end() :]) if match else (b"", raw)


def _check_relative(rest: bytes, *, via_request: bool) -> None:
    if via_request:
        raise ValueError("invalid URI for request")
    if b":" in rest.partition(b"/")[0]:
        raise ValueError("first path segment in URL cannot contain colon")


def _hierarchical(scheme: bytes, rest: bytes, query: bytes | None, *, via_request: bool) -> Url:
    user, host, omits_host = None, b"", False
    if rest.startswith(b"//") and (scheme or (not via_request and not rest.startswith(b"///"))):
        authority, slash, tail = rest[2:].partition(b"/")
        user, host = _parse_authority(scheme, authority)
        rest = slash + tail
    elif scheme:
        omits_host = rest.startswith(b"/")
    path = unescape(rest, Part.PATH)
    raw_path = b"" if escape(path, Part.PATH) == rest else rest
    return Url(scheme=scheme, user=user, host=host, path=path, raw_path=raw_path, query=query, omits_host=omits_host)


def _parse_authority(scheme: bytes, authority: bytes) -> tuple[tuple[bytes, ...] | None, bytes]:
    userinfo, at, host = authority.rpartition(b"@")
    parsed = _parse_host(scheme, host)
    if not at:
        return None, parsed
    if any(byte not in _WORD + b":!$&'()*+,;=%@" for byte in userinfo):
        raise ValueError("net/url: invalid userinfo")
    return tuple(unescape(part, Part.USER) for part in userinfo.split(b":", 1)), parsed


def _parse_host(scheme: bytes, host: bytes) -> bytes:
    bracket = host.rfind(b"[")
    if bracket > 0:
        raise ValueError("invalid IP-literal")
    if bracket == 0:
        return _parse_literal(host)
    colon = host.find(b":") if scheme in (b"http", b"https") else host.rfind(b":")
    if colon >= 0:
        _check_port(host[colon:])
    return unescape(host, Part.HOST)


def _check_port(colon_port: bytes) -> None:
    if not _PORT.fullmatch(colon_port):
        raise ValueError(f"invalid port {quote(from_bytes(colon_port))} after host")


def _parse_literal(host: bytes) -> bytes:
    """An IPv6 address in brackets, with a zone after %25."""
    name, bracket, colon_port = host[1:].rpartition(b"]")
    if not bracket:
        raise ValueError("missing ']' in host")
    _check_port(colon_port)
    port = unescape(colon_port, Part.HOST)
    zone = name.find(b"%25")
    if zone >= 0:
        unescaped = unescape(name[:zone], Part.HOST) + unescape(name[zone:], Part.ZONE)
    else:
        unescaped = unescape(name, Part.HOST)
    try:
        address = parse_address_bytes(unescaped)
    except ValueError as fault:
        raise ValueError(f"invalid host: {fault}") from fault
    if address.bits == 32:
        raise ValueError("invalid IP-literal")
    return b"[" + unescaped + b"]" + port


def query_values(query: bytes) -> dict[bytes, list[bytes]]:
    """The values of each key; pairs that cannot be read are left out, and all of them if there are too many."""
    values: dict[bytes, list[bytes]] = {}
    pairs = query.split(b"&")
    for pair in pairs if len(pairs) <= _MOST_PARAMETERS else []:
        if not pair or b";" in pair:
            continue
        key, _, value = pair.partition(b"=")
        try:
            key, value = unescape(key, Part.QUERY), unescape(value, Part.QUERY)
        except ValueError:  # Go's URL.Query drops it without a word
            continue
        values.setdefault(key, []).append(value)
    return values
