"""What expressions are made of: per type its literals, templates (`templates.txt`), and what ends a deep branch."""

from __future__ import annotations

from itertools import product
from pathlib import Path

DOMAINS = ("gpu.example.com", "other.example.com", "resource.kubernetes.io", "absent.example.com")
NAMES = ("model", "index", "numa", "healthy", "driverVersion", "tags", "lanes", "pcieRoot", "absent", "uuid")
CAPACITIES = ("memory", "cores", "odd", "absent")

# Literals good and bad: some of the texts are no quantity, version, address, pattern at all.
LITERALS: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false"),
    "int": ("0", "1", "-1", "2", "7", "100", "9223372036854775807", "-9223372036854775808", "0x1F"),
    "uint": ("0u", "1u", "7u", "18446744073709551615u"),
    "double": ("0.0", "1.0", "-1.5", "2.5", "1e10", "1e400", "-0.0", "0.1"),
    "string": ('""', '"a"', '"H100"', "'h100'", '"héllo"', '"a-b-c"', '" x "', 'r"\\d"', '"1"', '"日本"', '"""x"""'),
    "bytes": ('b""', 'b"a"', 'b"\\xff"', 'b"\\303\\277"'),
    "regex": ('"^H"', '"[0-9]+"', '"(a|b)*"', '"("', '"."', '"(?i)h"', '"a{2}"', '"(?!b)"', '"^$"'),
    "quantity text": ('"1Gi"', '"40Gi"', '"500m"', '"0"', '"1e3"', '"-1"', '"1 Gi"', '"1.5"', '"1024Mi"', '""'),
    "version text": (
        '"1.2.3"',
        '"580.65.6"',
        '"1.2.3-rc.1"',
        '"1.2.3+b"',
        '"v1.2"',
        '"1.2"',
        '"01.2.3"',
        '"1.0.0-alpha.1"',
    ),
    "address text": (
        '"10.0.0.1"',
        '"::1"',
        '"fe80::1"',
        '"127.0.0.1"',
        '"::ffff:1.2.3.4"',
        '"1.2.3"',
        '"224.0.0.1"',
        '"0.0.0.0"',
    ),
    "network text": ('"10.0.0.0/8"', '"10.1.2.3/16"', '"::1/128"', '"10.0.0.0/33"', '"2001:db8::/32"'),
    "url text": (
        '"https://example.com:80/a?b=c&b=d"',
        '"/path/to"',
        '"http://[::1]:8080"',
        '"x y"',
        '"http://u@h/%20"',
        '""',
    ),
    "duration text": ('"1h"', '"1.5s"', '"-2m"', '"100ms"', '"1d"', '"0"', '"1h30m"'),
    "timestamp text": (
        '"2026-01-02T03:04:05Z"',
        '"1970-01-01T00:00:00.5+01:00"',
        '"2026-13-01T00:00:00Z"',
        '"2024-02-29T23:59:59Z"',
    ),
    "zone": ('"UTC"', '"Europe/Berlin"', '"+02:00"', '"Nowhere"', '"-07:30"'),
    "format name": (
        '"dns1123Label"',
        '"uuid"',
        '"date"',
        '"datetime"',
        '"uri"',
        '"byte"',
        '"qualifiedName"',
        '"labelValue"',
        '"dns1123Subdomain"',
        '"dns1035Label"',
        '"dns1123LabelPrefix"',
        '"nothing"',
    ),
    "format text": (
        '"a-b"',
        '"A"',
        '"550e8400-e29b-41d4-a716-446655440000"',
        '"2026-01-02"',
        '"aGk="',
        '"x.y/z"',
        '"http://a"',
    ),
    "small": ("0", "1", "2", "3", "-1"),
    "null": ("null",),
    "type": ("int", "string", "type", "bool", "list", "map", "double"),
    "attribute name": NAMES,
    "capacity name": CAPACITIES,
    "domain": ('"gpu.example.com"', '"other.example.com"', '"resource.kubernetes.io"', '"absent.example.com"'),
}

COMPARE = ("==", "!=", "<", "<=", ">", ">=")
NUMERIC = ("int", "uint", "double")
ORDERED = (*NUMERIC, "string", "bytes", "bool", "duration", "timestamp")
EQUAL = ("quantity", "semver", "ip", "cidr", "ints", "strings", "map", "optint", "null", "type", "url")
LOOSE = (*NUMERIC, "string", "bool", "semver", "dyn")

# What stands in a hole when the branch has become deep enough.
LEAVES: dict[str, tuple[str, ...]] = {
    "quantity": ('quantity("1Gi")', 'device.capacity["gpu.example.com"].memory'),
    "semver": ('semver("1.2.3")', 'device.attributes["gpu.example.com"].driverVersion'),
    "ip": ('ip("10.0.0.1")', 'ip("::1")'),
    "cidr": ('cidr("10.0.0.0/8")', 'cidr("::/0")'),
    "url": ('url("https://example.com:8080/a%20b?x=1")',),
    "duration": ('duration("90s")', 'duration("0s")'),
    "timestamp": ('timestamp("2026-01-02T03:04:05Z")',),
    "ints": ("[1, 2]", "[]", "[3, 1, 2, 1]"),
    "doubles": ("[1.5, 0.5]",),
    "strings": ('["a", "b"]', "[]", '["b", "H100"]'),
    "map": ('{"a": 1}', '{"a": 1, "b": 2}'),
    "optint": ("optional.of(1)", "optional.none()"),
    "optstr": ('optional.of("a")', "optional.none()"),
    "optdyn": ('device.attributes["gpu.example.com"].?model', 'device.attributes["gpu.example.com"].?absent'),
    "dyn": (
        'device.attributes["gpu.example.com"].model',
        'device.attributes["gpu.example.com"].index',
        'device.attributes["gpu.example.com"].numa',
        'device.attributes["gpu.example.com"].healthy',
        'device.attributes["gpu.example.com"].driverVersion',
        'device.attributes["gpu.example.com"].tags',
        'device.attributes["gpu.example.com"].lanes',
        'device.attributes["gpu.example.com"].pcieRoot',
        'device.attributes["gpu.example.com"].absent',
        'device.attributes["gpu.example.com"].uuid',
    ),
    "attributes": ('device.attributes["gpu.example.com"]', 'device.attributes["other.example.com"]'),
    "capacities": ('device.capacity["gpu.example.com"]',),
    "named": ("uuid", "byte"),
}


def templates() -> dict[str, tuple[str, ...]]:
    """The templates of each type: those of the file and all comparisons."""
    read: dict[str, list[str]] = {}
    kind = ""
    for line in (Path(__file__).parent / "templates.txt").read_text().splitlines():
        if line.startswith(" "):
            read[kind].append(line.strip())
        elif line and not line.startswith("#"):
            kind = line.removesuffix(":")
            read[kind] = []
    read["bool"] += [f"<{kind}> {sign} <{kind}>" for kind, sign in product(ORDERED, COMPARE)]
    read["bool"] += [f"<{kind}> {sign} <{kind}>" for kind, sign in product(EQUAL, COMPARE[:2])]
    read["bool"] += [f"<dyn> {sign} <{kind}>" for kind, sign in product(LOOSE, COMPARE)]
    return {kind: tuple(texts) for kind, texts in read.items()}


TEMPLATES = templates()
