"""The file of what ails the cards, so that a restarted driver goes on saying it. Written whole; a broken one is empty.

What is lost with it is seen again where it still is so: by the recovery action of each card.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import structlog

from nodedriver.files import write_atomically
from nodedriver.health.ailments import Ailments

_log = structlog.get_logger()
_DECODER = msgspec.json.Decoder(Ailments)


def read(path: Path, boot_id: str) -> Ailments:
    """What is known under this boot."""
    try:
        return _DECODER.decode(path.read_bytes()).at_boot(boot_id)
    except FileNotFoundError:
        return Ailments(boot_id=boot_id)
    except msgspec.MsgspecError as error:
        _log.warning("record of ailments unreadable, begun anew", path=str(path), error=str(error))
        return Ailments(boot_id=boot_id)


def write(path: Path, ailments: Ailments) -> None:
    """Replace the file, durably. OSError where the disk says no."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(ailments), indent=1) + b"\n")
