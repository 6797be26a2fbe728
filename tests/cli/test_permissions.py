"""Who may read and write what a run, its sweep and its tracking leave on disk."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import jevexp


@pytest.fixture(autouse=True)
def wide_umask() -> Iterator[None]:
    """Programs that are started here inherit it."""
    before = os.umask(0)
    yield
    os.umask(before)


def wrong(root: Path, file: int, folder: int) -> dict[str, str]:
    """What below a folder, itself included, has other permissions."""
    found = {}
    for path in (root, *root.rglob("*")):
        mode = path.stat().st_mode
        expected = folder if stat.S_ISDIR(mode) else file
        if mode & 0o777 != expected:
            found[str(path.relative_to(root.parent))] = oct(mode & 0o777)
    return found


@pytest.mark.parametrize("sweep", [False, True])
@pytest.mark.parametrize(
    ("options", "file", "folder"),
    [((), 0o600, 0o700), (("group_access=true",), 0o660, 0o770)],
)
def test_a_run_and_its_database_are_the_owners_or_also_the_groups(
    workplace: Path, options: tuple[str, ...], file: int, folder: int, sweep: bool
) -> None:
    words = ("-m", "model.alias=a,b") if sweep else ()
    done = jevexp("dataset=demo", "caps.limit=2", *words, *options, cwd=workplace)
    assert done.status == 0, done.err
    assert (workplace / "outputs" / "mlflow.db").is_file()
    assert wrong(workplace / "outputs", file, folder) == {}

    runs = (path.parent for path in (workplace / "outputs").glob("**/manifest.json"))
    run = next(path for path in runs if "mlartifacts" not in path.parts)
    assert jevexp("report", str(run), "--draws", "200", cwd=workplace).status == 0
    assert wrong(workplace / "outputs", file, folder) == {}
