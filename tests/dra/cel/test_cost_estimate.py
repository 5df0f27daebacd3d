"""What the API server takes selectors to cost at most. Numbers are cel-go's, `@` is the device's own domain."""

from __future__ import annotations

import pytest

from dra.cel import compile_expression
from dra.cel.cost.paths import Path
from dra.cel.cost.ranges import LARGEST, Range, scaled
from dra.cel.cost.sizes import size_at

OWN = 'device.attributes["gpu.example.com"]'

NODES = (
    ("true", 0),
    ('device.driver == "x"', 3),
    ('@.model == "H100"', 5),
    ("has(@.model)", 3),
    ("has(device.attributes.a.b)", 3),
    ('dyn(device).driver == "x"', 3),
    ('@.?model.orValue("x") == "y"', 6),
    ("[1, 2] == [1, 2]", 21),
    ('{"a": 1} == {"a": 1}', 61),
    ("device.allowMultipleAllocations == true", 3),
    ('@.index > 1 ? @.model == "H100" : false', 10),
    ("true || false", 0),
    ('cel.bind(a, @, a.model == "x" && a.index == 1)', 19),
    ('[device.driver, "abcdefghijklmnopqrstu"].exists(s, s.contains("b"))', 37),
    ("[1, 2, 3].exists(x, x == 2)", 29),
    ('@.tags.exists(t, t == "x")', 389),
    ('@.all(k, k.startsWith("abcdefghijkl"))', 196),
    ('@.all(k, v, k.startsWith("abcdefghijkl"))', 196),
    ('device.attributes.all(d, d.contains("abcdefghijklm"))', 579),
    ('device.attributes.all(d, i, d.contains("abcdefghijklm"))', 579),
    ('{"abcdefghijkl": "m"}.all(k, v, k.contains(v))', 38),
    ("[1, 2].map(x, x * 2) == [2, 4]", 60),
    ('(true ? "abc" : "defghijklmnop").contains("x")', 2),
    ('("abcdefghij" + "klmnopqrst").startsWith("abcdefghij")', 3),
    ('optional.of(@).optMap(a, a.model == "x").orValue(false)', 25),
    ('device.capacity["gpu.example.com"].memory != quantity("1")', 1844674407370955269),
    ('device.capacity["gpu.example.com"]["memory"] != quantity("1")', 5),
    ("type(1) == int", 1844674407370955266),
)

CALLS = (
    ('"ab".matches("[a-z]{2,10}x")', 3),
    ('@.model.matches("^[a-z]+$")', 18),
    ('"abcdefghijkl".contains("abcdefghijkl")', 4),
    ('"a" in ["a", "b", "c"]', 13),
    ('"a" < "bcdefghijklmnopqrstu"', 1),
    ('bytes("abcdefghijklm") == b"a"', 3),
    ('string(b"abcdefghijklmnop") == "a"', 3),
    ('strings.quote("abc") == "x"', 2),
    ('"abc".format([]) == "abc"', 12),
    ('quantity("12345678901") == quantity("1")', 4),
    ('semver("1.2.3") == semver("1.2.3")', 3),
    ('url("https://a.b/c") == url("https://a.b/c")', 6),
    ("format.uuid() == format.uuid()", 9),
    ('ip("10.0.0.1") == ip("10.0.0.1")', 3),
    ('ip("10.0.0.1") != ip("10.0.0.1")', 1844674407370955266),
    ('cidr("10.0.0.0/8").ip() == ip("10.0.0.0")', 4),
    ('cidr("10.0.0.0/8").containsIP("10.0.0.1")', 6),
    ('cidr("10.0.0.0/8").containsIP(ip("10.0.0.1"))', 6),
    ('cidr("10.0.0.0/8").containsCIDR("10.0.0.0/9")', 9),
    ('cidr("10.0.0.0/8").containsCIDR(cidr("10.0.0.0/9"))', 9),
    ('ip.isCanonical("10.0.0.100")', 2),
    ('isIP("10.0.0.100")', 1),
    ('url("https://a.b/c").getHost() == "a.b"', 4),
    ('format.dns1123Label().validate("abcdefghijkl").hasValue()', 66),
    ('format.named("uri").hasValue()', 2),
    ("[3, 1, 2].isSorted()", 13),
    ('["a", "b"].isSorted()', 3689348814741910540),
    ("[1, 2].sum() == 3", 13),
    ('"abcabcabcabc".indexOf("c") == 2', 3),
    ("[1, 2].lastIndexOf(2) == 1", 13),
    ('@.tags.includes("x")', 68),
    ('@.model.lowerAscii() == "x"', 12),
    ('"abcdef".replace("", "xyz") == "x"', 3),
    ('"abcdefghijklmnopqrstuvwxyz".replace("ab", "xyz").contains("abcdefghijk")', 14),
    ('"abcabc".replace("abc", "d").contains("abcdefghijk")', 4),
    ('"a,b,c".split(",") == ["a"]', 12),
    ('"a,b,c".split(",", 2).all(x, x == "")', 10),
    ('["a", "b"].join("--") == "a"', 1844674407370955275),
    ('"abcabcabc".find("[a-c]+") == "abc"', 3),
    ('"abcabcabc".findAll("[a-c]+").all(x, true)', 30),
    ('"abcdefghijkl".substring(1, 3).trim() == "x"', 5),
)

LISTS = (
    ("[1, 2, 3].slice(1, 2) == [2]", 33),
    ("[1, 2, 3].slice(2, 1) == [2]", 18446744073709551615),
    ("[[1], [2]].flatten() == [1, 2]", 54),
    ("[[1], [2]].flatten(3) == [1, 2]", 58),
    ("lists.range(5).all(x, x > 1)", 42),
    ("[1, 2].reverse() == [2, 1]", 34),
    ("[1, 2, 2].distinct() == [1, 2]", 50),
    ("[2, 1].sort() == [1, 2]", 40),
    ('["b", "a"].sort() == ["a", "b"]', 41),
    ('["b", "a"].sortBy(x, x.size()) == ["a"]', 91),
    ('["b", "a"].sortBy(x, x) == ["a"]', 90),
    ("[1, 2].first().orValue(0) == 1", 13),
    ("sets.contains([1, 2, 3], [1, 2])", 27),
    ("sets.intersects([1, 2], [1])", 23),
    ("sets.equivalent([1, 2], [1])", 25),
)


@pytest.mark.parametrize(("text", "most"), NODES)
def test_what_kinds_of_nodes_cost(text: str, most: int) -> None:
    assert compile_expression(text.replace("@", OWN)).max_cost == most


@pytest.mark.parametrize(("text", "most"), CALLS)
def test_what_calls_cost(text: str, most: int) -> None:
    assert compile_expression(text.replace("@", OWN)).max_cost == most


@pytest.mark.parametrize(("text", "most"), LISTS)
def test_what_functions_of_lists_cost(text: str, most: int) -> None:
    assert compile_expression(text.replace("@", OWN)).max_cost == most


def test_the_api_server_takes_attributes_for_any() -> None:
    assert compile_expression(f'{OWN}.model == "H100"', environment="new").max_cost == 5


def test_numbers_stop_at_64_bits() -> None:
    assert Range(1, LARGEST) + Range(2, 1) == Range(3, LARGEST)
    assert Range(2, 2**63) * Range(3, 2) == Range(6, LARGEST)
    assert scaled(LARGEST, 0.1) == 1844674407370955264
    assert scaled(LARGEST, 2.0) == LARGEST
    assert scaled(11, 0.1) == 2


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("device driver", 63),
        ("device allowMultipleAllocations", 1),
        ("device attributes", 32),
        ("device attributes @keys", 63),
        ("device attributes @values @keys", 32),
        ("device attributes @values model", 64),
        ("device attributes @values @values", 64),
        ("device capacity @values @values", 0),
        ("device capacity @values memory", None),
        ("device attributes domain model", None),
        ("device attributes @values model @items", None),
        ("other", None),
        ("", None),
    ],
)
def test_sizes_that_the_api_allows(path: str, most: int | None) -> None:
    assert size_at(path.split()) == (None if most is None else Range(0, most))


def test_paths_that_grow_from_one_path_share_its_memory_where_there_is_room() -> None:
    short, long = Path("device").append("attributes"), Path("device").append("attributes").append("@values")
    assert [*short.append("@keys")] == ["device", "attributes", "@keys"]
    keys, values = long.append("@keys"), long.append("@values")
    assert [*keys] == [*values] == ["device", "attributes", "@values", "@values"]
