"""Files are opened, made, replaced and removed in the guarded modules, and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import jevexp

SRC = Path(jevexp.__file__).parent
GUARDED = frozenset({"untrusted/files.py", "untrusted/writing.py"})
# Of pathlib.Path, whatever it is called on; `replace` with one argument is no text's.
METHODS = frozenset(
    ("write_bytes", "write_text", "read_bytes", "read_text", "mkdir", "touch", "unlink", "rmdir",
     "rename", "symlink_to", "hardlink_to", "chmod", "lchmod")
)  # fmt: skip
OF_OS = frozenset(
    ("open", "mkdir", "makedirs", "rename", "renames", "replace", "remove", "unlink", "rmdir",
     "removedirs", "link", "symlink", "mkfifo", "mknod", "chmod", "truncate")
)  # fmt: skip
OF_SHUTIL = frozenset(("copy", "copy2", "copyfile", "copytree", "copymode", "move", "rmtree"))
OF_TEMPFILE = frozenset(("mkstemp", "mkdtemp", "NamedTemporaryFile"))
CLASSES = frozenset(("FileLock", "SoftFileLock", "FileHandler", "RotatingFileHandler"))
# File, call: why there is no other way.
ALLOWED = {
    ("cli/console.py", "os.open"): "the null device",
    ("cli/verbs/__init__.py", ".read_text"): "the installed package's own files",
    ("tracking/mlflow/child.py", "tempfile.mkdtemp"): "a private folder of this process",
    ("tracking/mlflow/child.py", "shutil.rmtree"): "that folder",
    ("tracking/mlflow/child_process.py", "shutil.rmtree"): "that folder, when its parent is gone",
    ("tracking/mlflow/child_process.py", ".read_text"): "the kernel's own files",
    ("cli/perform.py", "shutil.rmtree"): "the directory that this process has just made",
    ("cli/perform.py", ".rmdir"): "its parents, as far as they are empty",
    ("analysis/report/page.py", ".read_text"): "a resource of the installed package",
    ("ledger/owners.py", ".read_text"): "the kernel's own files",
    ("untrusted/locks.py", ".read_text"): "the kernel's own files",
    ("harness/upstream_package.py", ".read_text"): "the metadata of an installed package",
}


def _calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="open"):
                yield "open", node.lineno
            case ast.Name(id=name) if name in CLASSES:
                yield name, node.lineno
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in OF_OS:
                yield f"os.{name}", node.lineno
            case ast.Attribute(value=ast.Name(id="shutil"), attr=name) if name in OF_SHUTIL:
                yield f"shutil.{name}", node.lineno
            case ast.Attribute(value=ast.Name(id="tempfile"), attr=name) if name in OF_TEMPFILE:
                yield f"tempfile.{name}", node.lineno
            case ast.Attribute(attr=name) if name in CLASSES:
                yield name, node.lineno
            case ast.Attribute(attr=name) if name in METHODS:
                yield f".{name}", node.lineno
            case ast.Attribute(attr="replace") if len(node.args) == 1 and not node.keywords:
                yield ".replace", node.lineno
            case ast.Attribute(attr="open") if _mode(node):
                yield ".open", node.lineno


def _mode(call: ast.Call) -> bool:
    """Whether a call of a method `open` is one of a path: without arguments, or with a mode."""
    words = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "mode")]
    return (not call.args and not call.keywords) or any(
        isinstance(one, ast.Constant)
        and isinstance(one.value, str)
        and set(one.value) <= set("rwaxb+t")
        for one in words
    )


def _found(source: str) -> list[str]:
    return [name for name, _ in _calls(ast.parse(source))]


def test_no_file_is_touched_past_the_guarded_modules() -> None:
    found: dict[tuple[str, str], list[int]] = {}
    for path in sorted(SRC.rglob("*.py")):
        file = path.relative_to(SRC).as_posix()
        if file not in GUARDED:
            for name, line in _calls(ast.parse(path.read_text())):
                found.setdefault((file, name), []).append(line)
    assert {place: lines for place, lines in found.items() if place not in ALLOWED} == {}
    # What is not needed any more is not allowed any more.
    assert ALLOWED.keys() - found.keys() == set()


def test_every_kind_of_call_is_seen() -> None:
    calls = (
        "open('x')", "path.open()", "path.open('wb')", "path.open(mode='a')", "os.open(p, 0)",
        "path.write_text('')", "path.read_bytes()", "(a / b).mkdir(parents=True)",
        "path.replace(other)", "os.replace(a, b)", "path.rename(b)", "tempfile.mkstemp()",
        "FileLock(p)", "filelock.FileLock(p)", "shutil.copy(a, b)", "path.touch()",
        "logging.FileHandler(p)", "path.unlink()",
    )  # fmt: skip
    assert [call for call in calls if not _found(call)] == []
    no_paths = (
        "text.replace('a', 'b')",
        "backend.open(folder)",
        "place.open(1.0)",
        "replace(a, b=1)",
    )
    assert [call for call in no_paths if _found(call)] == []
