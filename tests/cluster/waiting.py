"""Wait for something that another process does, with a text that says what was seen last."""

import time
from collections.abc import Callable


class WaitedInVainError(AssertionError):
    """Time was up; an assertion, since a test that waits in vain has failed."""


def wait_until[T](look: Callable[[], T | None], what: str, seconds: float = 30.0, pause: float = 0.1) -> T:
    """Call `look` until it returns something true and give that back; WaitedInVainError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise WaitedInVainError(f"{what} did not come about in {seconds:.0f} s; seen last: {found!r}")
        time.sleep(pause)
    return found
