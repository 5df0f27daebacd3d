"""The checkpoint: which resource claims are prepared or half prepared, with all that undoing needs. Versioned JSON.

Reads and writes one file, whole; no lock, no hardware, no rule about who may hold what (`holding`). A field that this
version does not know is ignored; content that can't be read is set aside under a new name and never overwritten.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nodedriver.files import KeptFile, write_atomically
from nodedriver.holding import VERSION, Checkpoint, ClaimState


class CheckpointError(Exception):
    """The file's content is no checkpoint of a version that we know. The text names the file and the reason."""


_DECODER = msgspec.json.Decoder(Checkpoint)


def read_checkpoint(path: Path, boot_id: str) -> Checkpoint:
    """The file's content as it counts under this boot; a missing file is an empty checkpoint. CheckpointError else."""
    return CheckpointFile(path, boot_id).read()


class CheckpointFile:
    """The same, for who reads it often: decoded again only once it was replaced."""

    def __init__(self, path: Path, boot_id: str) -> None:
        self._boot_id = boot_id
        self._file = KeptFile(path, lambda content: _decoded(path, content, boot_id))

    def read(self) -> Checkpoint:
        """As `read_checkpoint`."""
        try:
            return self._file.read()
        except FileNotFoundError:
            return Checkpoint(boot_id=self._boot_id)


def _decoded(path: Path, content: bytes, boot_id: str) -> Checkpoint:
    try:
        checkpoint = _DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is not a checkpoint: {error}") from error
    if checkpoint.version != VERSION:
        raise CheckpointError(f"{path} has version {checkpoint.version}, and this driver reads version {VERSION}")
    return checkpoint if checkpoint.boot_id == boot_id else _after_reboot(checkpoint, boot_id)


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the file, durably."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(checkpoint), indent=1) + b"\n")


def keep_aside(path: Path) -> Path:
    """Give the unreadable file a second, new name, so that replacing the first one loses nothing."""
    aside = path.with_name(f"{path.name}.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    os.link(path, aside)
    return aside


def _after_reboot(checkpoint: Checkpoint, boot_id: str) -> Checkpoint:
    """A reboot ends MIG instances, compute modes, bindings, daemons and CDI files: every claim is prepared anew.

    What exists now is not ours, so nothing is marked as made by us.
    """
    claims = {
        uid: replace(
            claim,
            state=ClaimState.STARTED,
            devices=tuple(
                replace(d, made_instance=False, exclusive_process=False, interval=None, bound=False)
                for d in claim.devices
            ),
        )
        for uid, claim in checkpoint.claims.items()
    }
    return Checkpoint(boot_id=boot_id, claims=claims)
