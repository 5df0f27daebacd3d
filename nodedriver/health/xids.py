"""What an XID asks for: one table. Pure.

Sources: NVIDIA's XID catalogue and nverror.h for the numbers, the device plugin's list of XIDs that only end a process
(13, 31, 43, 45, 68). Where the catalogue and that list differ (94, 109), the catalogue counts. A number that is not in
the table asks for a reset: new errors are rather taken too seriously.
"""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """What has to happen before the card can be trusted again."""

    APPLICATION = "application"  # the process restarts; the card is fine
    DAEMON = "daemon"  # the MPS daemon recovers or is started again; the card is fine
    INFORMATION = "information"  # nothing now; an administrator should know
    RESET = "reset"
    NODE = "node"  # the node restarts, or somebody opens it


_NAMES = {
    13: "graphics engine exception", 31: "MMU fault", 43: "channel reset after a fault of the program",
    45: "preemptive cleanup", 48: "double-bit ECC error", 62: "PMU halt", 63: "row remapped", 64: "row remap failed",
    68: "NVDEC exception", 74: "NVLink error", 79: "fallen off the bus", 92: "high rate of single-bit ECC errors",
    94: "contained memory error", 95: "uncontained memory error", 109: "context switch timeout",
    119: "GSP timeout", 120: "GSP error", 140: "unrecovered ECC error", 143: "initialisation error",
    154: "recovery action changed", 158: "fatal timeout", 160: "channel retired", 161: "channel retired",
    167: "PCIe fatal timeout", 171: "uncorrectable DRAM error", 172: "uncorrectable SRAM error",
}  # fmt: skip
_APPLICATION = frozenset({13, 31, 43, 45, 68, 94})
_INFORMATION = frozenset({63, 92, 154, 160, 161})  # 154: what it asks for is said by the recovery action
_NODE = frozenset({79, 158, 167})


def severity_of(xid: int) -> Severity:
    """What that XID asks for."""
    if xid in _APPLICATION:
        return Severity.APPLICATION
    if xid in _INFORMATION:
        return Severity.INFORMATION
    return Severity.NODE if xid in _NODE else Severity.RESET


def name_of(xid: int) -> str:
    """A few words, "" for a number that is not known."""
    return _NAMES.get(xid, "")
