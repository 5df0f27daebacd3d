"""Which kernel module passes a card through: the best match among the aliases of the kernel's modules. Pure.

A variant module for one card (such as nvgrace_gpu_vfio_pci) has a tighter pattern than vfio_pci, which takes any. The
aliases are made by scripts/mod/file2alias.c of Linux, from PCI_DRIVER_OVERRIDE_DEVICE_VFIO.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

GENERIC = "vfio_pci"
_PREFIX = "vfio_pci:"
_WORDS = 3  # of a line: alias, pattern, module


def best_module(modalias: str, aliases: str) -> str:
    """The module for a device's modalias out of the text of modules.alias: the one with the fewest wildcards."""
    subject = modalias.strip().removeprefix("pci:")
    lines = (line.split() for line in aliases.splitlines() if line.startswith(f"alias {_PREFIX}"))
    fitting = [
        (pattern.count("*"), module)
        for _, pattern, module in (words for words in lines if len(words) == _WORDS)
        if fnmatchcase(subject, pattern.removeprefix(_PREFIX))
    ]
    return min(fitting)[1] if fitting else GENERIC


def driver_names(module: str) -> tuple[str, str]:
    """Under which names the module's driver may stand in sysfs: vfio_pci calls its own vfio-pci, others keep theirs."""
    return module.replace("_", "-"), module


def how_to_load(modules: Sequence[str]) -> str:
    """What an administrator does, for now and for the next boot (modprobe(8), modules-load.d(5))."""
    return f"modprobe -a {' '.join(modules)}, and name {'them' if modules[1:] else 'it'} in /etc/modules-load.d"


def is_vfio(driver: str | None) -> bool:
    """Whether a bound driver is one that passes a device through."""
    return "vfio" in (driver or "")
