"""What ran, as far as it is known."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from jevexp.run import journal

PACKAGE = "src/jevexp/__init__.py"


def checkout(folder: Path) -> Path:
    """A repository with one commit, laid out as ours."""
    module = folder / PACKAGE
    module.parent.mkdir(parents=True)
    module.write_text("")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return module


def use(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        journal, "jevexp", SimpleNamespace(__file__=str(module), __version__="1.2.3")
    )


def test_a_checkout_has_a_commit_and_is_clean_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = checkout(tmp_path)
    use(module, monkeypatch)
    clean = journal.describe_software()
    assert clean.jevexp == "1.2.3"
    assert clean.git_commit is not None
    assert len(clean.git_commit) == 40
    assert clean.git_dirty is False
    module.write_text("changed")
    assert journal.describe_software().git_dirty is True


def test_an_installed_package_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(tmp_path / "lib" / "jevexp" / "__init__.py", monkeypatch)
    found = journal.describe_software()
    assert (found.git_commit, found.git_dirty) == (None, None)


def test_without_git_the_state_is_unknown_and_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(checkout(tmp_path), monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = journal.describe_software()
    assert (found.git_commit, found.git_dirty) == (None, None)


def test_what_is_not_installed_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "PACKAGES", ("pydantic", "no-such-distribution"))
    packages = journal.describe_software().packages
    assert packages["pydantic"]
    assert packages["no-such-distribution"] is None


def test_a_hook_of_another_repository_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = checkout(tmp_path / "ours")
    checkout(tmp_path / "theirs")
    use(module, monkeypatch)
    expected = journal.describe_software().git_commit
    (tmp_path / "theirs/new").write_text("")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "theirs/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "theirs"))
    found = journal.describe_software()
    assert (found.git_commit, found.git_dirty) == (expected, False)
