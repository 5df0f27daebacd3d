"""What the shares of one device mean together: limits of its control daemon, and who holds a client to its limits.

Pure. By protocol 2 MPS has one set of defaults per server, and clients can only tighten them by their environment (MPS
documentation, "Environment Variables"). So the defaults are the largest share's, and smaller shares rest on their
environment. By protocol 3 the server has a namespace with limits for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from nodedriver.gpuconfig import MpsLimits
from nodedriver.ports import MpsDaemonSpec, MpsShare


class EnforcedBy(StrEnum):
    """Who holds the clients of a share to its limits; a word of the claim's device status.

    Unknown, while the MPS supervisor does not answer.
    """

    SERVER = "Server"
    CLIENT_ENVIRONMENT = "ClientEnvironment"
    NONE = "None"
    UNKNOWN = "Unknown"


def daemon_spec(uuid: str, shares: Sequence[MpsShare]) -> MpsDaemonSpec:
    """The daemon that serves all these shares (at least one)."""
    defaults = _defaults([share.limits for share in shares])
    return MpsDaemonSpec(
        device=uuid,
        thread_percentage=defaults.thread_percentage,
        memory_limit=defaults.memory_limit,
        shares=tuple(shares),
    )


def enforced_by(share: MpsLimits | None, shares: Sequence[MpsLimits], protocol: int = 2) -> EnforcedBy:
    """Who enforces this share beside `shares`, all on its device and it among them, under a daemon of that protocol.

    The server, where each share has a namespace, or where its defaults are no larger than this share's limits: a client
    without the environment meets the same. None without limits.
    """
    if share is None or share == MpsLimits():
        return EnforcedBy.NONE
    return EnforcedBy.SERVER if protocol == 3 or _defaults(shares) == share else EnforcedBy.CLIENT_ENVIRONMENT


def _defaults(shares: Sequence[MpsLimits]) -> MpsLimits:
    """Per limit the largest, or none where one has none."""
    return MpsLimits(
        thread_percentage=_largest([share.thread_percentage for share in shares]),
        memory_limit=_largest([share.memory_limit for share in shares]),
    )


def _largest(limits: Sequence[int | None]) -> int | None:
    given = [limit for limit in limits if limit is not None]
    return max(given) if len(given) == len(limits) else None
