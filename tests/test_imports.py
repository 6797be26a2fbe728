"""The modules of the package import each other in one direction."""

from graphlib import CycleError, TopologicalSorter

import grimp


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Modules of which each is imported by the next and the last is the first; empty without."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_a_circle_is_found() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}}) == []
    assert set(circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside functions count as well: they only put a circle off."""
    graph = grimp.build_graph("jevexp", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 100
    assert circle_in(imports) == []
