"""Programs of the driver root that are modules of this source tree."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from simulator.silicon.tree import Tree


def write_launcher(tree: Tree, program: str, module: str, *, before: str = "") -> Path:
    """A script that runs `module` with this interpreter, this source tree and this machine's state; where it is."""
    source, python = Path(__file__).resolve().parents[2], shlex.quote(sys.executable)
    path = tree.driver / "usr/bin" / program
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "#!/bin/sh\n"
        f"export PYTHONPATH={shlex.quote(str(source))}\n"
        f"export SILICON_STATE={shlex.quote(str(tree.state.absolute()))}\n"
        f'{before.format(python=python)}exec {python} -m {module} "$@"\n',
    )
    path.chmod(0o755)
    return path
