"""Only the pinned commit is used; everything else is named and refused."""

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from jevexp.errors import InputError
from jevexp.harness import upstream_package
from jevexp.harness.harness import make_harness
from jevexp.harness.upstream_package import find
from jevexp.settings import PINNED_COMMIT, Harness
from tests.support.compose import compose
from tests.support.upstream import from_git, git, install, make_checkout

NEEDS = f"harness.name: upstream needs the benchmark's package at commit {PINNED_COMMIT}: "
INSTALL = "pip install 'jevexp[upstream]'"


def why_not(path: str | None = None) -> str:
    with pytest.raises(InputError) as refused:
        find(path)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "site"
    path.mkdir()
    monkeypatch.syspath_prepend(str(path))
    return path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout whose commit is the pin for this test."""
    path = tmp_path / "checkout"
    monkeypatch.setattr(upstream_package, "PINNED_COMMIT", make_checkout(path))
    return path


# Installed


def test_the_pinned_commit_is_found_whatever_its_version_says(site: Path) -> None:
    install(site, from_git(PINNED_COMMIT), version="1.4.2")
    found = find(None)
    assert (found.root, found.origin) == (site.resolve(), "installed package")


def test_nothing_installed_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert why_not() == f"{NEEDS}it is not installed; {INSTALL}"


def test_the_other_project_of_that_name_is_refused(site: Path) -> None:
    install(site, None, version="0.1.0")
    assert why_not() == (
        f"{NEEDS}found jevbench 0.1.0 from a package index, where another project has that name; "
        f"{INSTALL}"
    )


def test_another_commit_is_refused(site: Path) -> None:
    install(site, from_git("ab" * 20))
    assert why_not() == f"{NEEDS}found jevbench at commit {'ab' * 20}; {INSTALL}"


@pytest.mark.parametrize(
    ("direct_url", "said"),
    [
        ({"url": "file:///home/me/jevbench", "dir_info": {"editable": True}}, "from a folder"),
        ({"url": "https://user:hunter2@host/a.zip", "archive_info": {}}, "from an unknown origin"),
        ({"url": "x", "vcs_info": {"vcs": "git"}}, "from an unknown origin"),
        ({"url": "x", "vcs_info": {"commit_id": 5}}, "from an unknown origin"),
        ([1], "from an unknown origin"),
        ("{", "from an unknown origin"),
    ],
)
def test_an_unknown_origin_is_refused(direct_url: Any, said: str, site: Path) -> None:
    install(site, direct_url)
    assert f"found jevbench 1.0.0 {said}, without a commit; " in why_not()
    assert why_not().endswith(INSTALL)
    assert "hunter2" not in why_not()


def test_a_folder_that_hides_the_installed_package_is_refused(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, from_git(PINNED_COMMIT))
    other = tmp_path / "other" / "jevbench"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(other.parent))
    assert why_not().startswith(f"harness.name: importing jevbench finds {other.resolve()} instead")


# A checkout: see test_git_objects for what is read of it


def test_the_pinned_commit_of_a_checkout_is_used_and_leaves_it_as_it_is(checkout: Path) -> None:
    before = list(sys.path)
    described = make_harness(Harness(name="upstream", path=str(checkout))).describe()
    assert described == {
        "name": "upstream",
        "commit": PINNED_COMMIT,
        "origin": "git checkout",
    }
    assert git(checkout, "status", "--porcelain", "--ignored") == ""
    assert sys.path == before


def test_what_is_imported_is_a_folder_of_ours_with_that_package_alone(checkout: Path) -> None:
    (checkout / "json.py").write_text("")
    git(checkout, "add", ".")
    root = find(str(checkout)).root
    assert not root.is_relative_to(checkout)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert [path.name for path in root.iterdir()] == ["jevbench"]


def test_two_checkouts_of_the_commit_are_one_copy(checkout: Path, tmp_path: Path) -> None:
    make_harness(Harness(name="upstream", path=str(checkout)))
    second = tmp_path / "second"
    git(tmp_path, "clone", "--quiet", str(checkout), str(second))
    make_harness(Harness(name="upstream", path=str(second)))
    assert find(str(second)).root == find(str(checkout)).root


def test_two_copies_are_never_mixed(checkout: Path, site: Path) -> None:
    install(site, from_git(git(checkout, "rev-parse", "HEAD")))
    make_harness(Harness(name="upstream", path=None))
    with pytest.raises(InputError, match="was imported in this process before"):
        make_harness(Harness(name="upstream", path=str(checkout)))


def test_the_current_folder_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "strange", from_git(PINNED_COMMIT))
    monkeypatch.chdir(tmp_path / "strange")
    # As it is while a provider's own code is imported.
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path.cwd())])
    assert why_not() == f"{NEEDS}it is not installed; {INSTALL}"


def test_a_path_that_is_no_checkout_is_refused(checkout: Path, tmp_path: Path) -> None:
    assert "no such folder; pip install" in why_not(str(tmp_path / "nothing"))
    assert "not the top of a git checkout" in why_not(str(checkout / "jevbench"))
    plain = tmp_path / "plain"
    plain.mkdir()
    assert "not the top of a git checkout" in why_not(str(plain))


def test_git_has_to_be_there(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert why_not(str(checkout)).endswith("git cannot be run")


def test_a_copy_that_cannot_be_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broken"
    make_checkout(path)
    git(path, "rm", "--quiet", "jevbench/budget.py")
    git(path, "commit", "--quiet", "--message", "broken")
    monkeypatch.setattr(upstream_package, "PINNED_COMMIT", git(path, "rev-parse", "HEAD"))
    with pytest.raises(InputError, match=r"cannot be imported: No module named 'jevbench\.budget'"):
        make_harness(Harness(name="upstream", path=str(path)))


# The settings


def test_only_the_upstream_harness_takes_a_path() -> None:
    assert compose("harness=upstream", "harness.path=here").harness.path == "here"
    with pytest.raises(InputError, match=r"^harness\.path: only harness=upstream takes one"):
        compose("harness.path=here")
