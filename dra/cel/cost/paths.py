"""Paths from a variable to a part of it, with one quirk of upstream: paths that grow from one path may share memory.

cel-go's estimate appends to Go slices (`append(c.getPath(e), "@keys")`). Where the slice has room, a second append to
the same slice overwrites what the first one added, and both paths then name the later part. Estimates depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator


class Path:
    """A sequence of names that grows as a Go slice of strings does."""

    __slots__ = ("_cells", "_length")

    def __init__(self, *names: str) -> None:
        self._cells: list[str | None] = list(names)  # as long as the slice's capacity
        self._length = len(names)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._cells[: self._length] if name is not None)

    def append(self, name: str) -> Path:
        """A path that is longer by the name, in this path's memory where that has room."""
        longer = Path()
        longer._length = self._length + 1
        longer._cells = self._cells if self._length < len(self._cells) else self._doubled()
        longer._cells[self._length] = name
        return longer

    def _doubled(self) -> list[str | None]:
        return [*self._cells, *[None] * max(len(self._cells), 1)]
