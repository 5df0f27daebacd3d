"""MPS limits as text, and the rule that a client's environment can only tighten them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.silicon import contexts
from simulator.silicon.fleet import build, load
from simulator.silicon.mps_limits import (
    ClientLimits,
    format_memory,
    parse_device_limits,
    parse_memory,
    parse_percentage,
    tightened,
)

DEVICES = ("GPU-a", "GPU-b")


@pytest.mark.parametrize(("text", "size"), [("1G", 2**30), ("512M", 2**29), ("20260M", 20260 * 2**20), ("0M", 0)])
def test_memory_values(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "10", "1.5G", "10Gi", "-1G", "G", "1 G", "10g"])
def test_what_is_no_memory_value(text: str) -> None:
    with pytest.raises(ValueError, match="no memory value"):
        parse_memory(text)


@pytest.mark.parametrize("text", ["0", "-5", "100.5", "x"])
def test_what_is_no_percentage(text: str) -> None:
    with pytest.raises(ValueError, match=r"percentage|could not convert"):
        parse_percentage(text)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", {}),
        ("0=1G,1=512M", {"GPU-a": 2**30, "GPU-b": 2**29}),
        ("GPU-b=2G", {"GPU-b": 2**31}),
        ("7=1G,GPU-c=1G", {}),
    ],
)
def test_device_limits(text: str, limits: dict[str, int]) -> None:
    assert parse_device_limits(text, DEVICES) == limits


@given(st.integers(0, 10**6))
def test_mebibytes_survive_format_and_parse(mebibytes: int) -> None:
    assert parse_memory(format_memory(mebibytes * 2**20)) == mebibytes * 2**20


limits = st.builds(ClientLimits, st.floats(1, 100), st.none() | st.integers(0, 10**6).map(lambda n: n * 2**20))


@given(limits, st.none() | st.floats(1, 100), st.none() | st.integers(0, 10**6))
def test_an_environment_never_loosens(server: ClientLimits, percentage: float | None, mebibytes: int | None) -> None:
    environment = {}
    if percentage is not None:
        environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(percentage)
    if mebibytes is not None:
        environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={mebibytes}M"
    got = tightened(server, "GPU-a", environment, DEVICES)
    assert got.active_thread_percentage <= server.active_thread_percentage
    assert percentage is None or got.active_thread_percentage <= percentage
    assert server.memory_bytes is None or (got.memory_bytes is not None and got.memory_bytes <= server.memory_bytes)
    assert mebibytes is None or (got.memory_bytes is not None and got.memory_bytes <= mebibytes * 2**20)


@pytest.mark.parametrize(("cuda_version", "most"), [(12080, 48), (13000, 48), (13010, 60), (13020, 60)])
def test_the_most_clients_of_a_card(cuda_version: int, most: int) -> None:
    silicon = replace(build(load("h100x8"), "x"), cuda_version=cuda_version)
    assert contexts.client_limit(silicon, contexts.Device(silicon.gpus[0], None)) == most
