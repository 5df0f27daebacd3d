"""What the shares of one device mean together: defaults of its control daemon, and who holds a client to its limits.

Pure. MPS has one set of defaults per server, and clients can only tighten them by their environment (MPS documentation,
"Environment Variables"). So the defaults are the largest share's, and smaller shares rest on their environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from nodedriver.gpuconfig import MpsLimits
from nodedriver.ports import MpsDaemonSpec


class EnforcedBy(StrEnum):
    """Who holds the clients of a share to its limits; a word of the claim's device status."""

    SERVER = "Server"
    CLIENT_ENVIRONMENT = "ClientEnvironment"
    NONE = "None"


def daemon_spec(uuid: str, shares: Sequence[MpsLimits]) -> MpsDaemonSpec:
    """The daemon that serves all these shares (at least one): per limit the largest, or none where one has none."""
    return MpsDaemonSpec(
        device=uuid,
        thread_percentage=_largest([share.thread_percentage for share in shares]),
        memory_limit=_largest([share.memory_limit for share in shares]),
    )


def enforced_by(share: MpsLimits | None, shares: Sequence[MpsLimits]) -> EnforcedBy:
    """Who enforces this share beside `shares`, all on its device and it among them.

    The server, where its defaults are no larger than this share's limits: a client without the environment meets the
    same. None without limits.
    """
    if share is None or share == MpsLimits():
        return EnforcedBy.NONE
    defaults = daemon_spec("", shares)
    equal = (defaults.thread_percentage, defaults.memory_limit) == (share.thread_percentage, share.memory_limit)
    return EnforcedBy.SERVER if equal else EnforcedBy.CLIENT_ENVIRONMENT


def _largest(limits: Sequence[int | None]) -> int | None:
    given = [limit for limit in limits if limit is not None]
    return max(given) if len(given) == len(limits) else None
