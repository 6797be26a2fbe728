"""Deep links into MLflow's user interface."""

from urllib.parse import parse_qs, urlsplit

from jevexp.tracking.mlflow.links import make_links


def query(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).fragment.partition("?")[2])


def test_several_runs_are_compared_and_nothing_else() -> None:
    links = make_links("http://host:5000/", "7", ["a", "b"])

    assert links.compare is not None
    assert links.compare.startswith("http://host:5000/#/compare-runs?runs=")
    assert query(links.compare)["runs"] == ['["a","b"]']
    assert query(links.compare)["experiments"] == ['["7"]']
    for link, mode in ((links.charts, "CHART"), (links.tables, "ARTIFACT")):
        assert link.startswith("http://host:5000/#/experiments/7/runs?")
        assert query(link)["searchFilter"] == ["attributes.run_id IN ('a','b')"]
        assert query(link)["compareRunsMode"] == [mode]


def test_a_single_run_is_shown_by_itself() -> None:
    links = make_links("http://host:5000", "7", ["a"], start="jevexp ui")

    assert links.compare is None
    assert links.runs == ("http://host:5000/#/experiments/7/runs/a?workflowType=machine_learning",)
    assert links.lines()[0] == "start     jevexp ui"
    assert "searchFilter" not in links.charts


def test_no_link_has_to_be_quoted_for_a_terminal() -> None:
    links = make_links("http://host:5000", "7", ["a", "b"])

    assert not any(set(line[10:]) & set(" \"'()[]") for line in links.lines())
