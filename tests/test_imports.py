"""No file imports itself through others: whoever reads one can stop at what it imports."""

import graphlib
from pathlib import Path

import grimp
import pytest


def imports(package: str) -> dict[str, set[str]]:
    """By module, the modules of the package that it imports, inside functions too.

    What only a type checker imports is left out.
    """
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    return {
        module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules
    }


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle, each imported by the one after it; empty where there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        modules: list[str] = error.args[1]
        return modules
    return []


def test_no_circle_between_files() -> None:
    graph = imports("jevexp")
    assert len(graph) > 100
    assert graph["jevexp.__main__"] >= {"jevexp.cli.main"}
    assert circle(graph) == []


LATE = "def go():\n    import rounds.first"
FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rounds.first"
ROUND = {"first", "second", "third"}


@pytest.mark.parametrize(
    ("second", "third", "expected"),
    [
        ("import rounds.third", "", set()),
        ("import rounds.third", "from rounds import first", ROUND),
        ("from rounds.third import go", LATE, ROUND),
        ("import rounds.third", FOR_TYPES, set()),
    ],
    ids=["a-line", "a-circle", "inside-a-function", "for-types-alone"],
)
def test_a_circle_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: str,
    third: str,
    expected: set[str],
) -> None:
    package = tmp_path / "rounds"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "first.py").write_text("import rounds.second\n")
    (package / "second.py").write_text(f"{second}\n")
    (package / "third.py").write_text(f"{third}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert {module.removeprefix("rounds.") for module in circle(imports("rounds"))} == expected


def test_a_package_that_its_own_module_imports_is_a_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "turns"
    package.mkdir()
    (package / "__init__.py").write_text("from turns.inner import value\n")
    (package / "inner.py").write_text("value = 1\n\ndef late():\n    from turns import value\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert set(circle(imports("turns"))) == {"turns", "turns.inner"}
