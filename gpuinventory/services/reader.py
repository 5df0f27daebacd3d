"""Lines of a watch in batches: all that has come, at once; and a word now and then while nothing comes.

A thread of its own reads, so that the writer is never kept from its lease, or from stopping, by a silent cluster. The
queue is bounded: where the database is slower than the network, the network waits.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from dra.kube.port import Cluster
from dra.kube.requests import Request

BATCH = 200
_WAITING = 400
_TICK = 1.0  # seconds between looks at whether to stop


class LineReader:
    """One watch. Iterate over `batches()`; an empty batch means that nothing came for a second."""

    def __init__(self, cluster: Cluster, request: Request) -> None:
        self._cluster = cluster
        self._request = request
        self._queue: queue.Queue[bytes | Exception | None] = queue.Queue(_WAITING)
        self._abandoned = threading.Event()
        self._fault: Exception | None = None

    def batches(self) -> Iterator[list[bytes]]:
        """Batches until the stream ends; errors of the stream are raised here.

        Closing the iterator early leaves the thread to end with the stream, at most `timeoutSeconds` later.
        """
        thread = threading.Thread(target=self._read, name=f"watch {self._request.path}", daemon=True)
        thread.start()
        try:
            ended = False
            while not ended:
                batch, ended = self._take()
                yield batch
        finally:
            self._abandoned.set()

    def _take(self) -> tuple[list[bytes], bool]:
        """What is there now, waiting a second for the first line; and whether that was the end."""
        if self._fault:  # after the lines that came before it
            raise self._fault
        lines: list[bytes] = []
        try:
            item = self._queue.get(timeout=_TICK)
            while isinstance(item, bytes) and len(lines) < BATCH - 1:
                lines.append(item)
                item = self._queue.get_nowait()
        except queue.Empty:
            return lines, False
        if isinstance(item, bytes):
            return [*lines, item], False
        self._fault = item
        return lines, item is None

    def _read(self) -> None:
        try:
            with self._cluster.stream(self._request) as lines:
                for line in lines:
                    if not self._put(line):
                        return
            self._put(None)
        except Exception as error:  # noqa: BLE001 - carried to the thread that can answer it, whatever it is
            self._put(error)

    def _put(self, item: bytes | Exception | None) -> bool:
        while not self._abandoned.is_set():
            try:
                self._queue.put(item, timeout=_TICK)
            except queue.Full:
                continue
            return True
        return False
