"""Writes to sysfs in a child process with a deadline.

Unbinding a device that something holds blocks the writer in the kernel, where no signal ends it. So the child is left
behind then, and remembered: until it is gone nothing else is written about that device.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from nodedriver.deadline import seconds_left
from nodedriver.facts import PciAddress
from nodedriver.ports import GpuError

SECONDS = 10.0  # a card that nothing holds takes a few to be unbound
_LEAST_SECONDS = 1.0  # also at the end of the kubelet's call, so that undoing can do something
_CHILD = """
import os, sys
for path, text in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, (text + "\\n").encode())
        os.close(descriptor)
    except OSError as error:
        sys.exit(f"{text or 'nothing'} to {path}: {error.strerror}")
"""

type Write = tuple[Path, str]


class SysfsWriter:
    """Writes for cards. GpuError where the kernel says no or does not answer in time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._stuck: dict[PciAddress, subprocess.Popen[str]] = {}
        self._lock = threading.Lock()

    def write(self, gpu: PciAddress, writes: Sequence[Write]) -> None:
        """Write each text and a newline to its file, one after another."""
        self._refuse_while_stuck(gpu)
        seconds = max(seconds_left(self._seconds), _LEAST_SECONDS)
        words = [word for path, text in writes for word in (str(path), text)]
        child = subprocess.Popen(  # noqa: S603 - this interpreter, with paths and names that we made
            [sys.executable, "-I", "-S", "-c", _CHILD, *words], stderr=subprocess.PIPE, text=True, errors="replace"
        )
        try:
            said = child.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired as error:
            child.kill()
            if child.stderr:
                child.stderr.close()
            with self._lock:
                self._stuck[gpu] = child
            raise GpuError(
                f"GPU {gpu}: the kernel did not finish writing {_words(writes)} within {seconds:.1f} s, so "
                "something still holds the card: end what uses it; see dmesg"
            ) from error
        if child.returncode:
            raise GpuError(f"GPU {gpu}: the kernel refused to write {' '.join(said.split())[:400]}. See dmesg.")

    def _refuse_while_stuck(self, gpu: PciAddress) -> None:
        with self._lock:
            child = self._stuck.get(gpu)
            if child is None:
                return
            if child.poll() is None:
                raise GpuError(
                    f"GPU {gpu}: process {child.pid}, which writes to sysfs, still waits in the kernel for whatever "
                    "holds the card: end what uses it, or restart the node"
                )
            del self._stuck[gpu]


def _words(writes: Sequence[Write]) -> str:
    return ", ".join(f"{text or 'nothing'} to {path.name}" for path, text in writes)
