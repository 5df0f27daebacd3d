"""Where NVIDIA's driver keeps its programs and libraries, below a root that is a setting.

Looks at names only and opens no file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_PROGRAM_FOLDERS = ("usr/bin", "bin", "usr/sbin", "sbin", "opt/bin")
# Distributions differ, and GKE's root has neither usr nor an architecture.
_LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
_FOLDERS = (*_LIBRARY_FOLDERS, *_PROGRAM_FOLDERS)
# What CUDA programs load of the driver (nvidia-ctk cdi generate); graphics is not served.
_LIBRARIES = (
    "libcuda",
    "libcudadebugger",
    "libnvidia-allocator",
    "libnvidia-encode",
    "libnvidia-gpucomp",
    "libnvidia-ml",
    "libnvidia-nvvm",
    "libnvidia-opencl",
    "libnvidia-opticalflow",
    "libnvidia-ptxjitcompiler",
    "libnvcuvid",
)
_PROGRAMS = ("nvidia-smi",)


def find_program(driver_root: Path, name: str) -> Path | None:
    """A program of the driver, or None where it is not installed."""
    candidates = (driver_root / folder / name for folder in _PROGRAM_FOLDERS)
    return next((path for path in candidates if path.is_file()), None)


def find_nvml(driver_root: Path) -> Path | None:
    """The NVML library, or None."""
    return next((path for folder in library_folders(driver_root) for path in folder.glob("libnvidia-ml.so.1")), None)


def library_folders(driver_root: Path) -> tuple[Path, ...]:
    """The folders that hold libcuda, which is where the loader must look."""
    folders = (driver_root / folder for folder in _LIBRARY_FOLDERS)
    return tuple(folder for folder in folders if (folder / "libcuda.so.1").exists())


def container_files(driver_root: Path) -> tuple[Path, ...]:
    """The libraries and programs that a CUDA container is given, by the names under which they are loaded.

    Links to one file are all named, since programs load `libcuda.so.1` and `libcuda.so` alike. The folders, which hold
    thousands of files, are read again only once one of them has changed.
    """
    return _files_in(driver_root, tuple(_changed(f"{driver_root}/{folder}") for folder in _FOLDERS))


def _changed(folder: str) -> int:
    """When an entry of the folder came or went last, in nanoseconds; 0 for one that is not there."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - each prepare asks for all of them, Path takes twice as long
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _files_in(driver_root: Path, _changes: tuple[int, ...]) -> tuple[Path, ...]:
    return tuple(_container_files(driver_root))


def _container_files(driver_root: Path) -> Iterator[Path]:
    for folder in library_folders(driver_root):
        for library in _LIBRARIES:
            yield from sorted(folder.glob(f"{library}.so*"))
    for program in _PROGRAMS:
        path = find_program(driver_root, program)
        if path is not None:
            yield path
