"""Finds and runs nvidia-ctk, in a child with a deadline, and puts the program of its hooks where the node can run it.

Hooks run on the node, outside this container, so a copy lies in the driver's own folder, which has the same path in
both.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from nodedriver.driverroot import find_program, library_folders
from nodedriver.files import write_atomically
from nodedriver.toolkit.reading import ToolkitError

PROGRAM, HOOK = "nvidia-ctk", "nvidia-cdi-hook"
AUTO = "auto"
_EXECUTABLE = 0o755
_MOST_SAID = 400  # characters
_MOMENT = 1.0  # seconds


def find(setting: str, driver_root: Path) -> Path:
    """nvidia-ctk where the setting says, else in the driver root, else where this container has programs."""
    if setting != AUTO:
        return _there(Path(setting))
    own = (Path(folder) / PROGRAM for folder in os.defpath.split(os.pathsep))
    found = find_program(driver_root, PROGRAM) or next((path for path in own if path.is_file()), None)
    if found is None:
        raise ToolkitError(f"{PROGRAM} is neither below the driver root {driver_root} nor in {os.defpath}")
    return found


def install_hook(program: Path, folder: Path) -> Path:
    """Where the node finds the program of the hooks that belongs to that nvidia-ctk."""
    content = _there(program.with_name(HOOK)).read_bytes()
    installed = folder / HOOK
    if not installed.exists() or installed.read_bytes() != content:
        write_atomically(installed, content, mode=_EXECUTABLE)
    return installed


def generate(program: Path, arguments: tuple[str, ...], driver_root: Path, *, seconds: float) -> bytes:
    """What `nvidia-ctk cdi generate` with these arguments answers; one that does not end in time is left behind."""
    libraries = ":".join(map(str, library_folders(driver_root)))
    try:
        child = subprocess.Popen(  # noqa: S603 - the program that the setting or the driver root has
            [str(program), "cdi", "generate", *arguments],
            env={"PATH": os.defpath, "LD_LIBRARY_PATH": libraries},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise ToolkitError(f"{program} can't be run: {error.strerror}") from error
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        _leave(child)
        raise ToolkitError(f"{program} did not end within {seconds:g} s") from error
    if child.returncode:
        said = " ".join(err.decode(errors="replace").split())[-_MOST_SAID:]
        raise ToolkitError(f"{program} ended with {child.returncode}: {said or 'it said nothing'}")
    return out


def _leave(child: subprocess.Popen[bytes]) -> None:
    """Kill it, and wait no longer than a moment: one that hangs in the kernel does not end even then."""
    child.kill()
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        child.wait(_MOMENT)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise ToolkitError(f"{path} is not there")
    return path
