"""The checksums as `sha256sum` writes and reads them, and lines that are none."""

import hashlib
from pathlib import Path

import pytest

from jevexp.store.checksums import (
    CHECKSUMS,
    checksum_lines,
    document_sha256,
    file_sha256,
    read_checksums,
)
from jevexp.untrusted.files import MAX_DOCUMENT_BYTES, TooLong

SHA256 = hashlib.sha256(b"content").hexdigest()


def read(folder: Path, content: bytes) -> list[tuple[int, str | None, str | None]]:
    (folder / CHECKSUMS).write_bytes(content)
    return list(read_checksums(folder))


def test_what_is_written_is_read_by_paths_in_their_order(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a-b", "größe"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"content")
    (tmp_path / "link").symlink_to("b")
    assert read(tmp_path, checksum_lines(tmp_path)) == [
        (1, "a/z", SHA256),
        (2, "a-b", SHA256),
        (3, "b", SHA256),
        (4, "größe", SHA256),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        SHA256,
        f"{SHA256} a",
        f"{SHA256} *a",
        f"{SHA256}  ",
        f" {SHA256}  a",
        f"{SHA256[:-1]}  a",
        f"{SHA256}0  a",
        f"{SHA256.upper()}  a",
        f"{SHA256}  /a",
        f"{SHA256}  ../a",
        f"{SHA256}  a/../b",
        f"{SHA256}  ./a",
        f"{SHA256}  a//b",
        f"{SHA256}  a/",
        f"{SHA256}  {CHECKSUMS}",
        f"{SHA256}  \udcff",
    ],
)
def test_a_line_that_is_none_has_a_number_and_nothing_else(tmp_path: Path, line: str) -> None:
    raw = line.encode(errors="surrogateescape")
    good = f"{SHA256}  a\n".encode()
    assert read(tmp_path, good + raw + b"\n" + good) == [
        (1, "a", SHA256),
        (2, None, None),
        (3, "a", SHA256),
    ]


def test_a_last_line_without_its_end_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, f"{SHA256}  a".encode()) == [(1, None, None)]


def test_a_line_that_is_too_long_is_named(tmp_path: Path) -> None:
    with pytest.raises(TooLong) as raised:
        read(tmp_path, f"{SHA256}  a\n{SHA256}  {'x' * 9000}\n".encode())
    assert raised.value.line == 2


def test_files_are_hashed_and_links_are_not_followed(tmp_path: Path) -> None:
    path, link, large = tmp_path / "a", tmp_path / "link", tmp_path / "large"
    path.write_bytes(b"content")
    link.symlink_to(path)
    with large.open("wb") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)
    for sha256 in (file_sha256, document_sha256):
        assert sha256(path) == SHA256
        with pytest.raises(OSError, match="found a link"):
            sha256(link)
    with pytest.raises(TooLong):
        document_sha256(large)
