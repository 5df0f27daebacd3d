"""Programs that run beside this one and end with it, even where it is killed: each holds one end of a pipe.

As a program (`python -m simulator.children FD MODULE …`) it is such a child: it runs the module in its own process and
ends it once the pipe says that the parent is gone. Works wherever Python does; knows nothing of what it runs.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[1]
_END_SECONDS: Final = 15.0
_LAST_LINES: Final = 20  # of a log


class Child:
    """One module as a program, in a session of its own so that Ctrl-C reaches it only through `stop`."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """`command` is the module with its arguments; `name` is for `fault`."""
        self._name, self._log = name, log
        watched, self._held = os.pipe()
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  # our own modules
                [sys.executable, "-m", "simulator.children", str(watched), *command],
                cwd=CHECKOUT,
                env={**environment, "PYTHONPATH": str(CHECKOUT)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=[watched],
            )
        os.close(watched)

    def fault(self) -> str:
        """That it ended by itself, with the end of its log; empty while it runs."""
        code = self._process.poll()
        return "" if code is None else f"{self._name} ended with {code}:\n{self.last_words()}"

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_LAST_LINES:])

    def stop(self) -> None:
        """SIGTERM, some seconds, SIGKILL."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._held)


def main(arguments: Sequence[str]) -> None:
    """Run the module until it ends or the parent does."""
    watched, module, *rest = arguments
    threading.Thread(target=_end_with_parent, args=(int(watched),), daemon=True).start()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_parent(watched: int) -> None:
    os.read(watched, 1)  # nothing is ever written: it returns when nobody holds the other end
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_END_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
