"""Building programs from Go modules: once per version of their inputs, and one clear line where it can't be."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.build import BuildError, Module, build, digest

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
SAY_NAME = """package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() { fmt.Println(filepath.Base(os.Args[0])) }
"""


@pytest.fixture
def module(tmp_path: Path) -> Module:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module portico.dev/tests/tiny\n\ngo 1.26\n")
    (folder / "main.go").write_text(SAY_NAME)
    return Module(name="tiny", folder=folder, links=("one", "other"))


def build_command(folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": str(folder), "PORTICO_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "tests.cluster.build", "helm"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_without_go_one_line_says_so(tmp_path: Path) -> None:
    done = build_command(tmp_path, path=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == "go was not found in PATH: the cluster's programs are built with Go 1.26 or newer\n"
    assert done.stdout == ""


def test_an_old_go_is_named(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.25.4\n")
    go.chmod(0o755)
    done = build_command(tmp_path, path=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"{go} is go1.25.4: the cluster's programs are built with Go 1.26 or newer\n"


def test_an_unknown_name_lists_the_known(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.cluster.build", "docker"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "kubernetes, containerd, helm" in done.stderr


def test_builds_once_and_links_the_further_names(
    module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    programs = build(module, tmp_path / "cache")
    assert subprocess.run([programs / "tiny"], capture_output=True, text=True, check=True).stdout == "tiny\n"
    assert subprocess.run([programs / "other"], capture_output=True, text=True, check=True).stdout == "other\n"
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "tiny: building from Go modules; cold, this takes minutes"
    assert said[-1].startswith("tiny: go build ended with 0, ")

    monkeypatch.setenv("PATH", "")  # what is there needs no Go
    assert build(module, tmp_path / "cache") == programs
    assert capfd.readouterr().err == ""


def test_two_at_once_build_once(module: Module, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor() as pool:
        built = list(pool.map(lambda _: build(module, tmp_path / "cache"), range(2)))
    assert built[0] == built[1]
    assert capfd.readouterr().err.count("building from Go modules") == 1


def test_what_a_killed_build_left_is_removed(module: Module, tmp_path: Path) -> None:
    left = tmp_path / "cache" / ".tiny-abc"
    left.mkdir(parents=True)
    programs = build(module, tmp_path / "cache")
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [".tiny.lock", programs.parent.name]


def test_a_program_that_does_not_compile_says_what_the_compiler_said(module: Module, tmp_path: Path) -> None:
    (module.folder / "main.go").write_text("package main\n\nfunc main() { missing() }\n")
    with pytest.raises(BuildError, match=r"(?s)tiny was not built: go build ended with 1.*undefined: missing"):
        build(module, tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".tiny.lock"]


def test_every_input_of_a_build_is_in_its_name(module: Module) -> None:
    before = digest(module)
    assert digest(replace(module, flags=("-ldflags", "-s"))) != before
    (module.folder / "go.sum").write_text("")
    with_sum = digest(module)
    assert with_sum != before
    (module.folder / "main.go").write_text(f"{SAY_NAME}// changed\n")
    assert digest(module) != with_sum
