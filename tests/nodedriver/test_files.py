"""Files that are replaced whole, and those that are read again only then."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nodedriver.files import KeptFile, remove_if_present, write_atomically


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    write_atomically(path, b"one")
    reader = path.open("rb")
    write_atomically(path, b"two")
    with reader:
        assert reader.read() == b"one"
    assert path.read_bytes() == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["claim.json"]


def test_what_a_killed_writer_left_is_no_spec_and_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    left = tmp_path / ".claim.json.next"
    left.write_bytes(b"hal")
    assert left.suffix not in (".json", ".yaml")
    write_atomically(path, b"whole")
    assert [p.name for p in tmp_path.iterdir()] == ["claim.json"]


def test_removing_may_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    write_atomically(path, b"one")
    remove_if_present(path)
    remove_if_present(path)
    assert not list(tmp_path.iterdir())


def counting(path: Path) -> tuple[KeptFile[str], list[bytes]]:
    """The file, and what was decoded so far."""
    decoded: list[bytes] = []

    def decode(content: bytes) -> str:
        decoded.append(content)
        return content.decode("ascii")

    return KeptFile(path, decode), decoded


def test_a_file_is_decoded_once_while_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    write_atomically(path, b"one")
    kept, decoded = counting(path)
    assert [kept.read(), kept.read(), kept.read()] == ["one"] * 3
    assert decoded == [b"one"]


@pytest.mark.parametrize("again", [write_atomically, Path.write_bytes], ids=["replaced", "in place"])
def test_each_new_content_is_seen(tmp_path: Path, again: Callable[[Path, bytes], object]) -> None:
    path = tmp_path / "kept"
    write_atomically(path, b"000")
    kept, _ = counting(path)
    for number in range(300):
        again(path, f"{number:0{3 + number % 2}}".encode())  # another length: a clock tick may see several writes
        assert int(kept.read()) == number


def test_a_file_that_goes_and_comes_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    kept, _ = counting(path)
    with pytest.raises(FileNotFoundError):
        kept.read()
    write_atomically(path, b"one")
    assert kept.read() == "one"
    remove_if_present(path)
    with pytest.raises(FileNotFoundError):
        kept.read()
    write_atomically(path, b"two")
    assert kept.read() == "two"


def test_what_can_not_be_decoded_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    write_atomically(path, b"one")
    kept, decoded = counting(path)
    kept.read()
    write_atomically(path, b"\xff")
    for _ in range(2):
        with pytest.raises(UnicodeDecodeError):
            kept.read()
    assert decoded == [b"one", b"\xff", b"\xff"]
