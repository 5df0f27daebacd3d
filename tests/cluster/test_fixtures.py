"""What the pytest plugin does to a run: marks by what is asked for, node-level tests left out in the open, a count.

Each test runs a pytest of its own over a small file, whose fixtures carry the names that decide the marks.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]

INI = """
[pytest]
pythonpath = {root}
addopts = -p no:django -p no:cacheprovider -p tests.cluster.fixtures --import-mode=importlib --strict-markers
markers =
  cluster: c
  node: n
  browser: b
  postgres: p
  redis: r
"""

TESTS = """
import pytest

@pytest.fixture
def cluster(): pass

@pytest.fixture
def node(cluster): pass

@pytest.fixture
def browser(): pass

@pytest.fixture
def broken(node): raise RuntimeError("no kubelet today")

def test_plain(): pass
def test_plane(cluster): pass
def test_pod(node): pass
def test_other_pod(node): pass
def test_page(browser): pass
def test_page_and_pod(browser, node): pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text(INI.format(root=ROOT))
    (tmp_path / "test_some.py").write_text(TESTS)
    return tmp_path


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-v", *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PORTICO_", "PYTEST_"))}
    return subprocess.run(
        command, cwd=folder, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )


def test_the_end_of_a_run_counts_what_ran(folder: Path) -> None:
    done = run_pytest(folder)
    assert done.returncode == 0
    assert "node-level tests run: 3, browser tests run: 2\n" in done.stdout
    assert "left out" not in done.stdout


def test_a_fixture_that_fails_counts_for_nothing(folder: Path) -> None:
    with (folder / "test_some.py").open("a") as file:
        file.write("\ndef test_on_broken_ground(broken): pass\n")
    done = run_pytest(folder)
    assert done.returncode == 1
    assert "node-level tests run: 3, browser tests run: 2\n" in done.stdout


def test_node_level_tests_are_left_out_in_the_open(folder: Path) -> None:
    done = run_pytest(folder, PORTICO_NODE="0")
    assert done.returncode == 0
    assert "node-level tests run: 0, browser tests run: 1\n" in done.stdout
    assert "node-level tests left out by PORTICO_NODE=0: 3\n" in done.stdout
    assert "3 passed, 3 deselected" in done.stdout


@pytest.mark.parametrize(
    ("mark", "chosen"),
    [
        ("cluster", {"test_plane", "test_pod", "test_other_pod", "test_page_and_pod"}),
        ("node", {"test_pod", "test_other_pod", "test_page_and_pod"}),
        ("browser", {"test_page", "test_page_and_pod"}),
        ("not cluster and not browser", {"test_plain"}),
    ],
)
def test_marks_follow_from_what_is_asked_for(folder: Path, mark: str, chosen: set[str]) -> None:
    done = run_pytest(folder, "-m", mark)
    passed = {line.split("::")[1].split()[0] for line in done.stdout.splitlines() if " PASSED" in line}
    assert passed == chosen
