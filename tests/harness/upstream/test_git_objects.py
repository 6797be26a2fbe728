"""Of a checkout the pinned commit is read as it was committed, and nothing of the checkout runs."""

import hashlib
import os
import shutil
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from jevexp.errors import InputError
from jevexp.harness import upstream_package
from jevexp.harness.upstream_package import GitObjects
from tests.support.upstream import STANDIN, git, make_checkout

RUNNER = PurePosixPath("jevbench/runner.py")
CHANGED = b"raise RuntimeError('a stranger was here')\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    make_checkout(path)
    return path


def head(checkout: Path) -> str:
    return git(checkout, "rev-parse", "HEAD")


def read(checkout: Path, commit: str) -> dict[PurePosixPath, bytes]:
    return GitObjects(checkout, private(checkout)).files(commit, "jevbench")


def private(checkout: Path) -> Path:
    folder = checkout.parent / "private"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def why_not(checkout: Path, commit: str) -> str:
    with pytest.raises(InputError) as refused:
        read(checkout, commit)
    message = str(refused.value)
    assert message.startswith(f"harness.path: {checkout}: ")
    assert "\n" not in message
    return message.removeprefix(f"harness.path: {checkout}: ")


def committed() -> dict[PurePosixPath, bytes]:
    return {
        PurePosixPath(path.relative_to(STANDIN)): path.read_bytes()
        for path in STANDIN.rglob("*.py")
    }


def in_work_tree(checkout: Path) -> None:
    (checkout / RUNNER).write_bytes(CHANGED)


def assume_unchanged(checkout: Path) -> None:
    git(checkout, "update-index", "--assume-unchanged", str(RUNNER))
    in_work_tree(checkout)
    assert git(checkout, "status", "--porcelain") == ""


def skip_worktree(checkout: Path) -> None:
    git(checkout, "update-index", "--skip-worktree", str(RUNNER))
    in_work_tree(checkout)
    assert git(checkout, "status", "--porcelain") == ""


def excluded(checkout: Path) -> None:
    (checkout / ".git/info").mkdir(exist_ok=True)
    (checkout / ".git/info/exclude").write_text("sitecustomize.py\n*.pyc\n")
    (checkout / "jevbench/sitecustomize.py").write_bytes(CHANGED)
    (checkout / "jevbench/__pycache__").mkdir()
    (checkout / "jevbench/__pycache__/runner.cpython-311.pyc").write_bytes(CHANGED)
    assert git(checkout, "status", "--porcelain") == ""


def replaced_blob(checkout: Path) -> None:
    (checkout / "other.py").write_bytes(CHANGED)
    other = git(checkout, "hash-object", "-w", "other.py")
    git(checkout, "replace", git(checkout, "rev-parse", f"HEAD:{RUNNER}"), other)
    assert git(checkout, "cat-file", "blob", f"HEAD:{RUNNER}") == CHANGED.decode().strip()


def replaced_commit(checkout: Path) -> None:
    first = head(checkout)
    in_work_tree(checkout)
    git(checkout, "commit", "--quiet", "--all", "--message", "other")
    git(checkout, "replace", first, head(checkout))


def a_later_commit(checkout: Path) -> None:
    in_work_tree(checkout)
    git(checkout, "commit", "--quiet", "--all", "--message", "later")


def packed(checkout: Path) -> None:
    git(checkout, "gc", "--quiet")
    assert not list((checkout / ".git/objects").glob("??"))


def borrowed(checkout: Path) -> None:
    """The objects are another repository's."""
    other = checkout.parent / "other"
    shutil.move(checkout, other)
    git(other.parent, "clone", "--quiet", "--shared", str(other), str(checkout))
    assert not list((checkout / ".git/objects").glob("??"))


def further_work_tree(checkout: Path) -> None:
    other = checkout.parent / "other"
    shutil.move(checkout, other)
    git(other, "worktree", "add", "--quiet", str(checkout))
    assert (checkout / ".git").is_file()


@pytest.mark.parametrize(
    "change",
    [
        in_work_tree,
        assume_unchanged,
        skip_worktree,
        excluded,
        replaced_blob,
        replaced_commit,
        a_later_commit,
        packed,
        borrowed,
        further_work_tree,
    ],
)
def test_the_commit_is_read_whatever_the_checkout_says(
    change: Callable[[Path], None], checkout: Path
) -> None:
    commit = head(checkout)
    change(checkout)
    assert read(checkout, commit) == committed()


@pytest.mark.parametrize(
    "settings",
    [
        {"filter.evil.smudge": "PROGRAM", "filter.evil.clean": "PROGRAM"},
        {"filter.evil.process": "PROGRAM", "filter.evil.required": "true"},
        {"core.fsmonitor": "PROGRAM", "core.hooksPath": "HOOKS"},
        {"diff.evil.textconv": "PROGRAM", "core.pager": "PROGRAM", "core.editor": "PROGRAM"},
        {"core.sshCommand": "PROGRAM", "core.gitProxy": "PROGRAM", "credential.helper": "PROGRAM"},
        {"core.alternateRefsCommand": "PROGRAM", "include.path": "included"},
        {"alias.cat-file": "!PROGRAM"},
        {
            "core.repositoryFormatVersion": "1",
            "extensions.partialClone": "origin",
            "remote.origin.promisor": "true",
            "remote.origin.url": "ext::PROGRAM",
            "protocol.allow": "always",
            "protocol.ext.allow": "always",
        },
    ],
)
def test_no_program_that_the_repository_names_is_run(
    settings: dict[str, str], checkout: Path
) -> None:
    commit = head(checkout)
    folder = checkout.parent
    program, ran = folder / "program", folder / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    hooks = folder / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        shutil.copy(program, hooks / name)
    (checkout / ".gitattributes").write_text("* filter=evil diff=evil text eol=crlf ident\n")
    (checkout / ".git/included").write_text(f"[core]\n\tfsmonitor = {program}\n")
    for name, value in settings.items():
        command = value.replace("PROGRAM", str(program)).replace("HOOKS", str(hooks))
        git(checkout, "config", name, command)
    assert read(checkout, commit) == committed()
    # Nor where an object is missing, which a partial clone would fetch.
    missing = git_object(checkout, git_id(checkout, f"{commit}:{RUNNER}"))
    missing.unlink()
    ran.unlink(missing_ok=True)
    assert why_not(checkout, commit).startswith("holds no blob ")
    assert not ran.exists()


def git_id(checkout: Path, name: str) -> str:
    # As the files have it, without the repository's settings.
    bare = checkout.parent / "bare"
    git(checkout.parent, "init", "--quiet", "--bare", str(bare))
    (bare / "objects/info").mkdir(exist_ok=True)
    (bare / "objects/info/alternates").write_text(f"{checkout / '.git/objects'}\n")
    return git(bare, "rev-parse", name)


def git_object(checkout: Path, object_id: str) -> Path:
    return checkout / ".git/objects" / object_id[:2] / object_id[2:]


def write_object(path: Path, kind: bytes, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"%s %d\0" % (kind, len(data)) + data))


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("", b"commit", "commit"),
        ("^{tree}", b"tree", "tree"),
        (":jevbench", b"tree", "tree"),
        (f":{RUNNER}", b"blob", "blob"),
    ],
)
def test_an_object_that_is_not_what_its_name_says_is_refused(
    name: str, kind: bytes, said: str, checkout: Path
) -> None:
    commit = head(checkout)
    object_id = git(checkout, "rev-parse", f"{commit}{name}")
    write_object(git_object(checkout, object_id), kind, CHANGED)
    refused = why_not(checkout, commit)
    # Git notices some itself.
    assert refused in (
        f"the {said} {object_id} is not what its name says",
        "holds objects that git cannot read; git fsck there",
    )


def test_an_object_in_a_pack_under_another_name_is_refused(checkout: Path) -> None:
    commit = head(checkout)
    packed(checkout)
    ours = git(checkout, "rev-parse", f"{commit}:{RUNNER}")
    theirs = git(checkout, "rev-parse", f"{commit}:jevbench/budget.py")
    (index,) = (checkout / ".git/objects/pack").glob("*.idx")
    data = bytearray(index.read_bytes())
    # Version 2: a header of 8 bytes and 256 counts, then names, checksums and places in the pack.
    (count,) = struct.unpack_from(">I", data, 8 + 255 * 4)
    names = 8 + 256 * 4
    at = {data[names + 20 * i : names + 20 * (i + 1)].hex(): i for i in range(count)}
    places = names + 24 * count
    mine, other = (places + 4 * at[one] for one in (ours, theirs))
    data[mine : mine + 4] = data[other : other + 4]
    index.chmod(0o644)
    index.write_bytes(data)
    assert why_not(checkout, commit) == f"the blob {ours} is not what its name says"


def test_an_object_of_another_kind_is_refused(checkout: Path) -> None:
    tree = git(checkout, "rev-parse", "HEAD^{tree}")
    assert why_not(checkout, tree).startswith(f"the commit {tree} is tree ")


def test_a_large_object_is_refused_before_it_is_unpacked(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_package, "MAX_OBJECT_BYTES", 2000)
    message = why_not(checkout, head(checkout))
    assert message.startswith("the blob ")
    assert message.endswith(" bytes")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process's memory")
def test_a_small_object_that_is_told_as_a_change_of_a_vast_one_is_refused(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_package, "_MEMORY_BYTES", 400 << 20)
    vast = 600 << 20
    commit = "ab" * 20
    # Version 2 of a pack: a blob of zeros, and a change of it that copies its first byte.
    packer = zlib.compressobj()
    zeros = b"".join(packer.compress(bytes(1 << 20)) for _ in range(vast >> 20)) + packer.flush()
    start = b"PACK" + struct.pack(">II", 2, 2)
    base = header(3, vast) + zeros
    change = varint(vast) + varint(1) + b"\x90\x01"
    delta = header(6, len(change)) + offset(len(base)) + zlib.compress(change)
    pack = start + base + delta
    pack += hashlib.sha1(pack).digest()
    names = sorted({"00" * 20: len(start), commit: len(start) + len(base)}.items())
    counts = [sum(int(name[:2], 16) <= byte for name, _ in names) for byte in range(256)]
    index = b"\xfftOc" + struct.pack(">I256I", 2, *counts)
    index += b"".join(bytes.fromhex(name) for name, _ in names) + bytes(4 * len(names))
    index += b"".join(struct.pack(">I", place) for _, place in names) + pack[-20:]
    folder = checkout / ".git/objects/pack"
    (folder / "pack-x.pack").write_bytes(pack)
    (folder / "pack-x.idx").write_bytes(index + hashlib.sha1(index).digest())
    with pytest.raises(InputError, match="holds objects that git cannot read"):
        GitObjects(checkout, private(checkout))._read([commit], "blob")


def header(kind: int, size: int) -> bytes:
    first, size = (kind << 4) | (size & 15), size >> 4
    return bytes([first | 128]) + varint(size) if size else bytes([first])


def varint(number: int) -> bytes:
    data = []
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def offset(number: int) -> bytes:
    data = [number & 127]
    while number := number >> 7:
        number -= 1
        data.insert(0, number & 127 | 128)
    return bytes(data)


def test_a_commit_that_is_not_there_is_named(checkout: Path) -> None:
    assert why_not(checkout, "ab" * 20) == f"holds no commit {'ab' * 20}; git fetch origin there"


def test_links_and_submodules_are_left_out(checkout: Path) -> None:
    (checkout / "jevbench/link.py").symlink_to("/etc/passwd")
    git(checkout, "add", ".")
    cacheinfo = f"160000,{head(checkout)},jevbench/module"
    git(checkout, "update-index", "--add", "--cacheinfo", cacheinfo)
    git(checkout, "commit", "--quiet", "--message", "odd")
    assert read(checkout, head(checkout)) == committed()


@pytest.mark.parametrize("name", [b"..", b".", b"a/b", b""])
def test_a_name_that_leads_elsewhere_is_refused(name: bytes, checkout: Path) -> None:
    blob = git(checkout, "rev-parse", f"HEAD:{RUNNER}")
    inner = tree(checkout, b"100644 " + name + b"\0" + bytes.fromhex(blob))
    outer = tree(checkout, b"40000 jevbench\0" + bytes.fromhex(inner))
    commit = git(checkout, "commit-tree", "-m", "odd", outer)
    assert why_not(checkout, commit) == f"the tree {inner} is damaged"


def tree(checkout: Path, data: bytes) -> str:
    path = checkout.parent / "tree"
    path.write_bytes(data)
    return git(checkout, "hash-object", "-t", "tree", "-w", "--literally", str(path))


@pytest.mark.parametrize(
    "variable",
    ["GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR"],
)
def test_the_environment_cannot_name_another_repository(
    variable: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = head(checkout)
    other = checkout.parent / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    repository = checkout / ".git"
    monkeypatch.setenv(
        variable, str(repository / "objects" if "OBJECT" in variable else repository)
    )
    assert why_not(other, commit) == f"holds no commit {commit}; git fetch origin there"
    monkeypatch.setenv(variable, str(other / ".git"))
    assert read(checkout, commit) == committed()


def test_the_environment_cannot_give_git_settings(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = head(checkout)
    ran = checkout.parent / "ran"
    for name, value in {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "alias.cat-file",
        "GIT_CONFIG_VALUE_0": f"!touch {ran}",
        "GIT_TRACE": str(ran),
        "GIT_EXEC_PATH": str(checkout),
    }.items():
        monkeypatch.setenv(name, value)
    assert read(checkout, commit) == committed()
    assert not ran.exists()


@pytest.mark.parametrize(
    "pointer", ["gitdir: nowhere\n", "nothing", "gitdir: \0\n", "gitdir: .\n", "x" * 100_000]
)
def test_a_pointer_that_leads_to_no_repository_is_refused(pointer: str, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / ".git").write_text(pointer)
    assert why_not(checkout, "ab" * 20) == "not the top of a git checkout"


def test_a_pipe_in_the_place_of_the_pointer_is_refused(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    os.mkfifo(checkout / ".git")
    assert why_not(checkout, "ab" * 20) == "not the top of a git checkout"


def test_a_pipe_in_the_place_of_an_object_ends(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_package, "_TIMEOUT_S", 1.0)
    commit = head(checkout)
    git_object(checkout, commit).unlink()
    os.mkfifo(git_object(checkout, commit))
    assert why_not(checkout, commit) == "git took more than 1 seconds"
