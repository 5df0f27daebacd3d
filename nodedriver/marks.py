"""The mark that a claim leaves in the environment of its containers, and reading it back from a process. Pure.

Processes of several claims share a card; the mark says whose a process is. It says nothing that a container's owner may
not know: the uid of the claim that the container was given.
"""

from __future__ import annotations

from dra.names import ClaimUID

_PREFIX = "PORTICO_CLAIM_"


def mark(uid: ClaimUID) -> str:
    """The entry of the environment; each claim has a variable of its own, since a container may have several claims."""
    return f"{_PREFIX}{uid.replace('-', '_')}=1"


def marked_with(environment: bytes) -> frozenset[ClaimUID]:
    """The claims in a process's environment, as /proc gives it (proc_pid_environ(5): entries end with NUL)."""
    entries = environment.decode(errors="replace").split("\0")
    names = (entry.partition("=")[0] for entry in entries if entry.startswith(_PREFIX))
    return frozenset(ClaimUID(name.removeprefix(_PREFIX).replace("_", "-")) for name in names)
