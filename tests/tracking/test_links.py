"""Deep links into MLflow's user interface."""

from urllib.parse import parse_qs, urlsplit

from jevexp.tracking import TrackedRun
from jevexp.tracking.mlflow.links import make_links

RUNS = [TrackedRun(name, "7", name, name) for name in "ab"]


def query(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).fragment.partition("?")[2])


def test_several_runs_are_compared_and_nothing_else() -> None:
    links = dict(make_links("http://host:5000/", RUNS))

    assert links["compare"].startswith("http://host:5000/#/compare-runs?runs=")
    assert query(links["compare"])["runs"] == ['["a","b"]']
    assert query(links["compare"])["experiments"] == ['["7"]']
    for label, mode in (("charts", "CHART"), ("per task", "ARTIFACT")):
        assert links[label].startswith("http://host:5000/#/experiments/7/runs?")
        assert query(links[label])["searchFilter"] == ["attributes.run_id IN ('a','b')"]
        assert query(links[label])["compareRunsMode"] == [mode]
    assert "run" not in links


def test_a_single_run_is_shown_by_itself() -> None:
    links = dict(make_links("http://host:5000", RUNS[:1]))

    assert "compare" not in links
    assert links["run"] == ("http://host:5000/#/experiments/7/runs/a?workflowType=machine_learning")
    assert "searchFilter" not in links["charts"]


def test_no_link_has_to_be_quoted_for_a_terminal() -> None:
    links = dict(make_links("http://host:5000", RUNS))

    assert not any(set(link) & set(" \"'()[]") for link in links.values())
