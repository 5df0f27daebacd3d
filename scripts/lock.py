"""Write requirements/*.txt from pyproject.toml: one resolution, and the parts of it that each place installs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path("requirements")
SETS = {
    "dev": ("portal", "nodedriver", "dev"),
    "portal": ("portal",),
    "nodedriver": ("nodedriver",),
    "demo": ("portal", "nodedriver"),
}


def main() -> None:
    """Resolve the widest set first; the others are held to its versions."""
    uv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.12"]
    options = ["--no-python-downloads", "--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate"]
    for name, extras in SETS.items():
        wanted = [f"--extra={extra}" for extra in extras]
        bound = [] if name == "dev" else ["--constraint", str(FOLDER / "dev.txt")]
        target = ["pyproject.toml", "--output-file", str(FOLDER / f"{name}.txt")]
        subprocess.run([*uv, *options, *wanted, *bound, *target], check=True)  # noqa: S603  # our own arguments


if __name__ == "__main__":
    main()
