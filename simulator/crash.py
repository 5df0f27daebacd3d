"""Where a driver process dies: it kills itself at the boundary between two deeds that a file in its machine asks for.

The file `die-at` holds a number: with 0 or none the boundaries of a claim are only written down, one a line, in
`boundaries`; with n the process ends by SIGKILL at the n-th from then on, and the file is gone.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from nodedriver.boundary import EVENT


def install(root: Path) -> None:
    """Look at every boundary of this process from now on. There is no way back: audit hooks stay."""
    wish, log = root / "die-at", root / "boundaries"
    wished = str(wish)

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event == EVENT and os.path.exists(wished):  # noqa: PTH110 - each deed asks, Path takes four times as long
            _pass(wish, log, str(arguments[1]))

    sys.addaudithook(look)


def _pass(wish: Path, log: Path, before: str) -> None:
    left = int(wish.read_text() or 0)
    with log.open("a") as lines:
        lines.write(f"{before}\n")
    if left == 1:
        wish.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    elif left:
        wish.write_text(str(left - 1))
