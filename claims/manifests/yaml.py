"""JSON values to YAML text that the API server reads back as the same values.

Pure. The API server reads by the rules of YAML 1.1 (sigs.k8s.io/yaml), where bare `n`, `on`, `1e3`, `0o7`, `1_000`,
`.5`, `12:30:00` and `~` are no strings. So only text that can't be anything else goes bare; all else is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

type Scalar = str | int | float | None
type Value = Scalar | Sequence[Value] | Mapping[str, Value]

# A letter first rules out numbers, times, `.inf`, `~`, `---` and every indicator; a colon only inside a word is no key.
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_./:]+[A-Za-z0-9]+)*")
# Words that YAML 1.1 reads as booleans or null (yaml.org/type/bool.html and null.html), in any case to be safe.
_NOT_BARE = frozenset({"y", "yes", "n", "no", "on", "off", "true", "false", "null"})
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def document(value: Mapping[str, Value], *, comment: str = "") -> str:
    """One document with keys in their order. The comment stands above it, each of its lines after `# `."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    return head + "".join(f"{line}\n" for line in _mapping(value))


def _mapping(value: Mapping[str, Value]) -> Iterator[str]:
    for key, inner in value.items():
        yield from _entry(f"{_scalar(key)}:", inner)


def _entry(head: str, value: Value) -> Iterator[str]:
    """`head` with its value: on the same line if it has one, else below."""
    match value:
        case str() | int() | float() | None:
            yield from _scalar_entry(head, value)
        case Mapping() if value:
            yield head
            yield from (f"  {line}" for line in _mapping(value))
        case Mapping():
            yield f"{head} {{}}"
        case Sequence() if value:
            yield head
            for item in value:
                yield from _item(item)
        case _:
            yield f"{head} []"


def _item(value: Value) -> Iterator[str]:
    """An entry of a list; a mapping begins on the dash's own line."""
    match value:
        case Mapping() if value:
            first, *rest = _mapping(value)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
        case Sequence() if value and not isinstance(value, str):
            yield "-"
            yield from (f"  {line}" for item in value for line in _item(item))
        case _:
            yield from _entry("-", value)


def _scalar_entry(head: str, value: Scalar) -> Iterator[str]:
    if isinstance(value, str) and _is_block(value):
        yield f"{head} |-"
        yield from (f"  {line}" for line in value.split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: Scalar) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value if _is_bare(value) else f'"{"".join(map(_escaped, value))}"'
        case _:
            return str(value)


def _is_bare(text: str) -> bool:
    return _BARE.fullmatch(text) is not None and text.lower() not in _NOT_BARE


def _is_block(text: str) -> bool:
    """Whether a literal block keeps the text: several lines, none empty, padded or with a character to be escaped."""
    lines = text.split("\n")
    return len(lines) > 1 and all(line and line == line.strip() and line.isprintable() for line in lines)


def _escaped(character: str) -> str:
    """The character inside double quotes; what is not printable is escaped. Unlike JSON's, escapes reach past FFFF."""
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    point = ord(character)
    return f"\\x{point:02X}" if point <= 0xFF else f"\\u{point:04X}" if point <= 0xFFFF else f"\\U{point:08X}"
