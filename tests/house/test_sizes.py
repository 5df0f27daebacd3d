"""Small rooms: no file over 400 lines, no function over 60, docstring and signature included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSES = ("dra", "portal", "gpuinventory", "claims", "nodedriver", "simulator", "benchmarks", "scripts", "tests")
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60


def sources() -> Iterator[Path]:
    for house in HOUSES:
        for path in sorted((ROOT / house).rglob("*.py")):
            if "migrations" not in path.parts and not path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
                yield path


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (
                f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
                (node.end_lineno or node.lineno) - node.lineno + 1,
            )


def test_the_houses_are_there() -> None:
    assert len({path.relative_to(ROOT).parts[0] for path in sources()}) >= len(HOUSES) - 1


def test_no_file_is_over_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources()}

    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == {}


def test_no_function_is_over_60_lines() -> None:
    long = {name: lines for path in sources() for name, lines in functions(path) if lines > MOST_LINES_OF_A_FUNCTION}

    assert long == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]

    assert silent == []
