"""Whatever the bytes are: an object, or a fault of the domain with its place; never another exception, never a hang."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra.errors import InvalidObjectError
from dra.extended import charges, special_claim
from dra.objects import DeviceClass, DeviceTaintRule, Pod, ResourceClaim, ResourceClaimTemplate, ResourceSlice, encode
from dra.objects.validate import faults
from dra.objects.versions import read

SAMPLES = [
    item
    for path in sorted((Path(__file__).parent / "samples").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    for item in document.get("items", [document])
]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into the plain JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, entry in entries for inner in places(entry, (*path, key)))]


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A sample with junk at up to three places."""
    plain: Any = copy.deepcopy(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(0, 3))):
        *path, last = draw(st.sampled_from([each for each in places(plain) if each]))
        place = plain
        for step in path:
            place = place[step]
        place[last] = draw(JUNK)
    return json.dumps(plain, default=str).encode()


def use(body: bytes) -> None:
    """Read the object and do with it what does not need a cluster."""
    with contextlib.suppress(InvalidObjectError):
        made = read(body)
        assert read(encode(made)) == made
        if isinstance(made, DeviceClass | DeviceTaintRule | ResourceClaim | ResourceClaimTemplate | ResourceSlice):
            assert all(str(fault) for fault in faults(made))
        if isinstance(made, ResourceClaim):
            assert charges(made.spec, ())
        if isinstance(made, Pod):
            special_claim(made, (), {})


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoiled())
def test_spoiled_samples(body: bytes) -> None:
    use(body)


@settings(deadline=None)
@given(spoiled(), st.data())
def test_spoiled_bytes(body: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 20)))

    use(body[:start] + data.draw(st.binary(max_size=8)) + body[end:])


@settings(deadline=None)
@given(st.binary(max_size=200) | JUNK.map(lambda value: json.dumps(value).encode()))
def test_any_bytes(body: bytes) -> None:
    use(body)


def test_deep_and_long_input_ends_in_a_fault() -> None:
    head = b'{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": '
    for body in (head + b'{"a":' * 200_000, b"[" * 1_000_000, head + b"1" * 100_000, head + b'"' + b"a" * 1_000_000):
        with contextlib.suppress(InvalidObjectError):
            raise AssertionError(read(body))
