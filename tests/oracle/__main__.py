"""`python -m tests.oracle --cases N --seed S`: N allocation cases and N expression x device cases, ours against theirs.

Ends in one line of JSON. Exit status 1 where anything differs; each such case is printed small before, as JSON that a
test can hold. Of 20,000 cases on, every feature must have been met often enough, or the status is 2.
"""

from __future__ import annotations

import secrets
import sys
from argparse import ArgumentParser

import msgspec

from tests.oracle import run
from tests.oracle.asking import Oracle
from tests.oracle.coverage import MEASURED

MOST_SHOWN = 25


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.oracle", description="Compare our engine with the scheduler's own.")
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=None, help="a fresh one unless given")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", file=sys.stderr)
    tally = run.Tally()
    with Oracle() as oracle:
        run.allocate(oracle, tally, seed, arguments.cases)
        run.select(oracle, tally, seed, arguments.cases)
        show(oracle, tally)
    lacking = run.lacking(tally) if arguments.cases >= MEASURED else []
    for line in lacking:
        print(line, file=sys.stderr)
    print(msgspec.json.encode({"seed": seed} | tally.report()).decode())
    return 1 if tally.disagreements else 2 if lacking else 0


def show(oracle: Oracle, tally: run.Tally) -> None:
    """Each disagreement made small, the first MOST_SHOWN of them."""
    for found in tally.disagreements[:MOST_SHOWN]:
        question, what = run.smallest(oracle, found["question"])
        print(what, file=sys.stderr)
        print(msgspec.json.encode(question).decode(), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
