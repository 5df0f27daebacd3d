"""The set-up fails early, with one line that says what is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


def test_an_interpreter_is_found_on_this_machine() -> None:
    result = run("scripts/find-python", **os.environ)

    assert result.returncode == 0
    assert Path(result.stdout.strip()).exists()


def test_a_candidate_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)

    result = run("scripts/find-python", **(os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}))

    assert result.returncode == 0
    assert result.stdout.strip() != str(shim)


def test_without_an_interpreter_one_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "grep").symlink_to("/bin/grep")
    (tmp_path / "ls").symlink_to("/bin/ls")

    result = run("/bin/sh", "scripts/find-python", PATH=str(tmp_path), HOME=str(tmp_path))

    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "no CPython >= 3.12" in result.stderr


def test_without_go_one_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "sed").symlink_to("/bin/sed")

    result = run("/bin/sh", "scripts/check-go", PATH=str(tmp_path))

    assert result.returncode == 1
    assert result.stderr == ("portico: Go >= 1.26 is needed to build the test cluster, found none: put it on PATH\n")


def test_an_old_go_is_named(tmp_path: Path) -> None:
    (tmp_path / "sed").symlink_to("/bin/sed")
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.19.8\n")
    go.chmod(0o755)

    assert "found 1.19.8" in run("/bin/sh", "scripts/check-go", PATH=str(tmp_path)).stderr


def test_missing_packages_are_named_to_who_is_not_root(tmp_path: Path) -> None:
    for name, answer in (("id", "echo 1000"), ("dpkg-query", "exit 1"), ("apt-get", "exit 1"), ("grep", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / name).chmod(0o755)

    result = run("/bin/sh", "scripts/system-packages", "make test", "runc", "chromium", PATH=str(tmp_path))

    assert result.returncode == 1
    assert result.stderr == "portico: make test needs runc chromium: run 'apt-get install runc chromium' as root\n"


def test_ci_refuses_to_leave_the_node_out() -> None:
    result = run(".ci/run", **(os.environ | {"NODE": "0"}))

    assert result.returncode == 1
    assert "NODE=0 is refused" in result.stderr
