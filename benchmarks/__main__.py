"""`python -m benchmarks NAME`: run one benchmark. Exit status 0 where budgets are kept, 1 where not, 2 for no such."""

import importlib
import sys
from pathlib import Path

from benchmarks.report import Report

NOT_BENCHMARKS = {
    "__init__",
    "__main__",
    "kubelets",
    "machines",
    "nothing",
    "peer",
    "readmodel",
    "report",
    "rig",
    "weight",
}


def names() -> list[str]:
    """The benchmarks that exist: one module each, with `run(report)`."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_BENCHMARKS)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in names():
        print(f"which benchmark? there are: {', '.join(names())}", file=sys.stderr)
        return 2
    report = Report(arguments[0])
    importlib.import_module(f"benchmarks.{arguments[0]}").run(report)
    return 0 if report.verdict() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
