"""Stand-in for `nvidia-ctk cdi generate --format json` (NVIDIA Container Toolkit 1.20) and for its hooks' program.

It answers what stands in `nvidia-ctk.json`, with the values of this machine. A machine has it once `install` put it
below the driver root.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from simulator.silicon.launcher import write_launcher
from simulator.silicon.state import State
from simulator.silicon.tree import Tree

_ANSWER = Path(__file__).with_name("nvidia-ctk.json")


def install(tree: Tree) -> Path:
    """Put both programs below the machine's driver root; where nvidia-ctk is then."""
    hook = tree.driver / "usr/bin/nvidia-cdi-hook"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    return write_launcher(tree, "nvidia-ctk", "simulator.silicon.ctk")


def main() -> int:
    """Run as the program; returns its exit status."""
    parser = argparse.ArgumentParser(prog="nvidia-ctk")
    cdi = parser.add_subparsers(dest="command", required=True).add_parser("cdi")
    generate = cdi.add_subparsers(dest="verb", required=True).add_parser("generate")
    for flag, allowed in {"--mode": ["nvml"], "--format": ["json"], "--device-name-strategy": ["uuid"]}.items():
        generate.add_argument(flag, choices=allowed, required=True)
    for flag in ("--vendor", "--class", "--driver-root", "--dev-root", "--nvidia-cdi-hook-path"):
        generate.add_argument(flag, required=True)
    given = vars(parser.parse_args())
    values = {
        "vendor": given["vendor"],
        "class": given["class"],
        "hook": given["nvidia_cdi_hook_path"],
        "root": given["driver_root"].rstrip("/"),
        "version": State(Path(os.environ["SILICON_STATE"])).read().driver_version,
    }
    text = _ANSWER.read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
