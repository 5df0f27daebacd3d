"""Functions of URLs. A URL is an absolute URI or an absolute path.

Follows k8s.io/apiserver/pkg/cel/library/urls.go; what a URL is, stands in `go_url`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_text import from_bytes
from dra.cel.libraries.go_url import Url, parse_request_uri, parse_url, query_values
from dra.cel.types import BOOL, STRING, URL, Type, list_of, map_of
from dra.cel.values import CelMap


def _url(text: str) -> Url:
    try:
        parse_request_uri(text)  # refuses relative URLs, but knows no fragments
        return parse_url(text)
    except ValueError as fault:
        raise CelRuntimeError(f"URL parse error during conversion from string: {fault}") from fault


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


def _query(url: Url) -> CelMap:
    values = query_values(url.query or b"")
    return CelMap.of(*((from_bytes(key), tuple(map(from_bytes, found))) for key, found in values.items()))


def _part(name: str, overload: str, get: Callable[[Url], bytes]) -> Library:
    return {name: (Overload(overload, (URL,), STRING, lambda url: from_bytes(get(url)), member=True),)}


_VALUES: Final[Type] = map_of(STRING, list_of(STRING))

FUNCTIONS: Final[Library] = {
    "url": (Overload("string_to_url", (STRING,), URL, _url),),
    "isURL": (Overload("is_url_string", (STRING,), BOOL, _is_url),),
    "getQuery": (Overload("url_get_query", (URL,), _VALUES, _query, member=True),),
    **_part("getScheme", "url_get_scheme", lambda url: url.scheme),
    **_part("getHost", "url_get_host", lambda url: url.host),
    **_part("getHostname", "url_get_hostname", lambda url: url.hostname),
    **_part("getPort", "url_get_port", lambda url: url.port),
    **_part("getEscapedPath", "url_get_escaped_path", lambda url: url.escaped_path),
}
