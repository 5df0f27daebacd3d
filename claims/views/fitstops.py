"""What ends kube-scheduler's search, in words: the selector by the name that a person knows it by, and the device.

Pure. The kind of device and one of that kind are told, never who holds it.
"""

from __future__ import annotations

from claims.refusals import quoted
from claims.services.fit import Stop
from claims.views.fitconditions import kind_words
from claims.views.fitwords import Asked

_NO_KEY = "no such key"
MESSAGE = 400  # characters of the scheduler's own error that are shown


def message_of(stop: Stop) -> str:
    """The scheduler's own error, as an event of the pod would say it."""
    message = stop.failed.message
    return message if len(message) <= MESSAGE else f"{message[:MESSAGE]}…"


def stop_words(stop: Stop, asked: Asked, choice: str = "") -> str:
    """Which selector fails on what, and what to do; "" for another error. `choice` is the one among alternatives."""
    device, miss = stop.failed.device, stop.miss
    if stop.kind is None or miss is None or device is None or "error" not in miss.facts:
        return ""
    error = str(miss.facts["error"])
    of = f", for {choice}," if choice else ""
    on = f"{kind_words(stop.kind)}, such as {device.device} of {device.pool}"
    guard = " Guard the key with has()." if _NO_KEY in error else ""
    return (
        f"{_selector(stop, asked)}{of} fails on {on}: “{quoted(str(miss.facts['conjunct']))}”, {quoted(error)}.{guard}"
    )


def _selector(stop: Stop, asked: Asked) -> str:
    number = (stop.failed.selector or 0) + 1
    if stop.failed.device_class:
        return f"selector {number} of the class {stop.failed.device_class}"
    if stop.expression in asked.cel:
        return f"your condition {asked.cel[stop.expression]}"
    return f"selector {number} of the request"
