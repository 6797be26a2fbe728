"""Files from strangers: only regular ones are opened, and only so much of them is read."""

import io
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.untrusted.files import (
    NotAFile,
    TooLong,
    numbered_lines,
    opened,
    read_document,
    whole_lines,
)


def test_a_file_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345678")
    assert read_document(path) == read_document(path, most=8) == b"12345678"


def test_a_file_that_is_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLong, match="longer than 1000 bytes") as caught:
        read_document(path, most=1000)
    assert caught.value.line is None


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (Path.mkdir, "expected a file, found a folder"),
        (os.mkfifo, "expected a file, found a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "expected a file, found a device"),
    ],
)
def test_what_is_no_file_is_refused_at_once(
    workplace: Path, make: Callable[[Path], None], found: str
) -> None:
    path = workplace / "file"
    make(path)
    with pytest.raises(NotAFile) as caught, opened(path):
        pass
    assert (caught.value.strerror, caught.value.filename) == (found, str(path))


def test_a_socket_cannot_be_opened(workplace: Path) -> None:
    _socket(workplace / "file")
    with pytest.raises(OSError, match="No such device or address"), opened(workplace / "file"):
        pass


def test_a_link_is_followed_only_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert read_document(link) == b"content"
    with pytest.raises(NotAFile) as caught:
        read_document(link, follow_links=False)
    assert caught.value.strerror == "expected a file, found a link"


@pytest.mark.parametrize("name", ["a\0b", "half \ud800"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_system(name: str) -> None:
    with pytest.raises(OSError, match="no path can hold that") as caught, opened(Path(name)):
        pass
    assert caught.value.filename.isascii()


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / "file", follow_links=False)


def test_lines_are_numbered_and_keep_their_ends() -> None:
    lines = numbered_lines(io.BytesIO(b"one\n\ntwo\r\nlast"))
    assert list(lines) == [(1, b"one\n"), (2, b"\n"), (3, b"two\r\n"), (4, b"last")]


def test_a_line_may_be_as_long_as_said_and_no_longer() -> None:
    lines = numbered_lines(io.BytesIO(b"123\n1234\n"), most=4)
    assert next(lines) == (1, b"123\n")
    with pytest.raises(TooLong, match="longer than 4 bytes") as caught:
        next(lines)
    assert caught.value.line == 2


def test_a_torn_last_line_is_no_whole_one() -> None:
    assert list(whole_lines(io.BytesIO(b"one\n\ntwo"))) == [(1, b"one\n"), (2, b"\n")]
    assert list(whole_lines(io.BytesIO(b"torn"))) == []
