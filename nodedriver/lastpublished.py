"""The file of what was published last, so that nothing that a claim holds is forgotten when somebody deletes the slices
while no driver runs: the kubelet does so at its start, and a card that is gone can't be asked any more.

Read once, then kept in memory; written when something else was published. Decides nothing (`keeping` does).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import structlog

from dra.slices import SliceContent
from nodedriver.files import write_atomically
from nodedriver.keeping import Content

_log = structlog.get_logger()
_DECODER: msgspec.json.Decoder[Content] = msgspec.json.Decoder(tuple[SliceContent, ...])


class LastPublished:
    """One driver's on one node. A file that can't be read counts as none, and one that can't be written is logged: the
    slices in the API server are still there in most cases.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: Content | None = None

    def content(self) -> Content:
        """What was published, by this process or by the last one; () where that is not known."""
        if self._content is None:
            self._content = self._read()
        return self._content

    def keep(self, content: Content) -> None:
        """Remember that from now on, durably."""
        if content == self.content():
            return
        self._content = content
        try:
            write_atomically(self._path, msgspec.json.encode(content))
        except OSError as error:
            _log.warning("what is published was not kept", path=str(self._path), error=str(error))

    def _read(self) -> Content:
        try:
            return _DECODER.decode(self._path.read_bytes())
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("what was published last not read", path=str(self._path), error=str(error))
            return ()
