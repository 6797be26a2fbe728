"""Names that people chose become names that MLflow takes, and stay apart."""

import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.tracking.mlflow.labels import safe_names


@pytest.mark.parametrize("name", ["policy", "multi hop", "a.b-c_d:e", "ordinal.v2", "Größe"])
def test_a_good_name_is_kept(name: str) -> None:
    assert safe_names([name]) == {name: name}


@pytest.mark.parametrize(
    ("name", "safe"),
    [("a[0]", "a_0_"), ("a/b", "a_b"), ("..", "__"), (".", "_"), (" ", "_"), ("50%", "50_")],
)
def test_an_odd_name_is_replaced(name: str, safe: str) -> None:
    assert safe_names([name]) == {name: safe}


def test_names_that_would_collide_stay_apart() -> None:
    safe = safe_names(["a[0]", "a(0)", "a_0_"])

    assert safe["a_0_"] == "a_0_"
    assert len(set(safe.values())) == 3


@given(st.sets(st.text(min_size=1, max_size=300), min_size=1, max_size=5))
def test_every_name_is_taken_by_mlflow(names: set[str]) -> None:
    safe = safe_names(names)

    assert len(set(safe.values())) == len(names)
    for name in safe.values():
        metric = f"family/{name}/accuracy"
        assert re.fullmatch(r"[/\w.\- :]+", metric)
        assert posixpath.normpath(metric) == metric
        assert len(metric) <= 250
