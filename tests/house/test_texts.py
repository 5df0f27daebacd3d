"""What the house says about itself is true: rooms are drawn, commands exist, no text carries a machine's paths."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from benchmarks.__main__ import names

ROOT = Path(__file__).parents[2]
HOUSES = ("dra", "portal", "gpuinventory", "claims", "nodedriver", "simulator")
# Folders of somebody's machine, and hosts of package registries; written in parts, so that this file is no find itself.
FOLDERS = ("root", "work")
HOSTS = (("pypi", "org"), ("pythonhosted", "org"), ("registry", "npmjs"), ("proxy", "golang"), ("deb", "debian"))
FOREIGN = re.compile(
    "|".join([*(rf"(?<![\w}}>])/{name}/" for name in FOLDERS), *(re.escape(".".join(h)) for h in HOSTS)])
)
NOT_TEXT = {".png", ".woff2", ".ico", ".sum"}


def tracked() -> list[Path]:
    output = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in output.split("\0") if name]


def rooms(house: str) -> set[str]:
    """The modules and packages right inside a house."""
    inside = {path.stem for path in (ROOT / house).glob("*.py")}
    inside |= {path.parent.name for path in (ROOT / house).glob("*/__init__.py")}
    return inside - {"__init__", "__main__", "apps", "migrations", "templatetags"}


def test_every_room_has_its_word_in_the_architecture() -> None:
    text = (ROOT / "docs/dev/architecture.md").read_text()
    words = set(re.findall(r"[a-z_0-9]+", text))

    assert {f"{house}.{room}" for house in HOUSES for room in rooms(house) if room not in words} == set()


def test_the_readme_names_the_two_commands_and_make_has_them() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()

    for word in ("demo", "test"):
        assert f"make {word}" in readme
        assert re.search(rf"^{word}:", makefile, re.MULTILINE)


def test_help_names_every_benchmark() -> None:
    listed = re.search(r"make bench NAME=(\S+)", (ROOT / "Makefile").read_text())
    assert listed is not None
    assert set(names()) <= set(listed[1].split("|"))


def test_no_text_carries_the_paths_of_a_machine_or_a_registrys_host() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix not in NOT_TEXT and path.is_file()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if FOREIGN.search(line)
    ]

    assert found == []


def test_lock_files_carry_hashes_and_no_addresses() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert "--find-links" not in text
