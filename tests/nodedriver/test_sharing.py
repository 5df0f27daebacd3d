"""Shares of one device together: what the daemon's defaults are, and who enforces each share."""

import pytest

from dra.names import ClaimUID
from nodedriver.gpuconfig import MpsLimits
from nodedriver.ports import MpsDaemonSpec, MpsShare
from nodedriver.sharing import EnforcedBy, daemon_spec, enforced_by

QUARTER = MpsLimits(thread_percentage=25, memory_limit=20_000)
HALF = MpsLimits(thread_percentage=50, memory_limit=40_000)
QUARTER_LITTLE_MEMORY = MpsLimits(thread_percentage=25, memory_limit=8_000)
MANY_THREADS = MpsLimits(thread_percentage=75, memory_limit=10_000)
THREADS_ONLY = MpsLimits(thread_percentage=50)

SPECS = {
    "one": ([QUARTER], (25, 20_000)),
    "equal": ([QUARTER, QUARTER, QUARTER, QUARTER], (25, 20_000)),
    "largest": ([QUARTER, HALF, QUARTER], (50, 40_000)),
    "largest of each": ([HALF, MANY_THREADS], (75, 40_000)),
    "one without a memory limit": ([THREADS_ONLY], (50, None)),
    "no limits": ([MpsLimits()], (None, None)),
}
ENFORCED = {
    "alone": (QUARTER, [QUARTER], EnforcedBy.SERVER),
    "among equals": (QUARTER, [QUARTER, QUARTER], EnforcedBy.SERVER),
    "smaller than a neighbour": (QUARTER, [QUARTER, HALF], EnforcedBy.CLIENT_ENVIRONMENT),
    "the largest": (HALF, [QUARTER, HALF], EnforcedBy.SERVER),
    "less memory than a neighbour": (
        QUARTER_LITTLE_MEMORY,
        [QUARTER, QUARTER_LITTLE_MEMORY],
        EnforcedBy.CLIENT_ENVIRONMENT,
    ),
    "largest in one limit only": (MANY_THREADS, [HALF, MANY_THREADS], EnforcedBy.CLIENT_ENVIRONMENT),
    "whole under MPS without limits": (MpsLimits(), [MpsLimits()], EnforcedBy.NONE),
    "exclusive": (None, [], EnforcedBy.NONE),
}


@pytest.mark.parametrize(("shares", "defaults"), SPECS.values(), ids=SPECS)
def test_daemon_defaults(shares: list[MpsLimits], defaults: tuple[int | None, int | None]) -> None:
    threads, memory = defaults
    named = tuple(MpsShare(claim=ClaimUID(f"{n}"), name=f"share-{n}", limits=each) for n, each in enumerate(shares))
    expected = MpsDaemonSpec(device="GPU-1", thread_percentage=threads, memory_limit=memory, shares=named)
    assert daemon_spec("GPU-1", named) == expected


@pytest.mark.parametrize(("share", "shares", "who"), ENFORCED.values(), ids=ENFORCED)
def test_enforced_by(share: MpsLimits | None, shares: list[MpsLimits], who: EnforcedBy) -> None:
    assert enforced_by(share, shares) is who


@pytest.mark.parametrize(("share", "shares", "who"), ENFORCED.values(), ids=ENFORCED)
def test_with_namespaces_the_server_enforces_whatever_the_neighbours(
    share: MpsLimits | None, shares: list[MpsLimits], who: EnforcedBy
) -> None:
    expected = EnforcedBy.NONE if who is EnforcedBy.NONE else EnforcedBy.SERVER
    assert enforced_by(share, shares, protocol=3) is expected
