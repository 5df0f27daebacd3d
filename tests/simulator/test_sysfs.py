"""What the made tree's /proc tells of who has which card open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulator.silicon import sysfs
from simulator.silicon.fleet import initialise
from simulator.silicon.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return initialise(tmp_path / "machine", "h100x8")


@pytest.fixture
def held(tree: Tree) -> Iterator[str]:
    """The number of a descriptor by which this process has the first card open."""
    descriptor = os.open(tree.gpu_node(0), os.O_RDONLY)
    yield str(descriptor)
    os.close(descriptor)


def test_many_look_at_once_and_none_misses_a_holder(tree: Tree, held: str) -> None:
    link = tree.proc / str(os.getpid()) / "fd" / held

    def look(_number: int) -> str:
        sysfs.settle(tree)
        return str(link.readlink())

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(look, range(200))) == {"/dev/nvidia0"}


def test_who_let_go_of_a_card_is_not_shown_any_more(tree: Tree) -> None:
    first, second = (os.open(tree.gpu_node(minor), os.O_RDONLY) for minor in (0, 1))
    folder = tree.proc / str(os.getpid())
    sysfs.settle(tree)
    assert {link.name for link in (folder / "fd").iterdir()} == {str(first), str(second)}
    os.close(first)
    sysfs.settle(tree)
    assert {link.name for link in (folder / "fd").iterdir()} == {str(second)}
    os.close(second)
    sysfs.settle(tree)
    assert not folder.exists()
