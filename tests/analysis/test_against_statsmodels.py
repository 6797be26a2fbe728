"""The formulas against those of statsmodels, on made-up data."""

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from jevexp.analysis.intervals import clustered_mean, wilson
from jevexp.analysis.verdicts import holm, mcnemar_exact


@pytest.mark.parametrize("seed", range(5))
def test_the_clustered_mean_is_a_regression_on_a_constant(seed: int) -> None:
    generator = np.random.default_rng(seed)
    clusters = generator.integers(15, size=60)
    values = generator.normal(0.2, 1, size=60) + generator.normal(size=15)[clusters]

    found = clustered_mean(values, clusters)
    expected = OLS(values, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )

    assert found.mean == pytest.approx(expected.params[0])
    assert found.standard_error == pytest.approx(expected.bse[0])
    assert found.p == pytest.approx(expected.pvalues[0])


@pytest.mark.parametrize(("gained", "lost"), [(0, 1), (5, 5), (3, 12), (86, 150)])
def test_mcnemars_exact_test(gained: int, lost: int) -> None:
    expected = mcnemar([[700, lost], [gained, 600]], exact=True).pvalue

    assert mcnemar_exact(gained, lost) == pytest.approx(expected)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("successes", "n"), [(0, 24), (16, 48), (71, 72), (231, 231)])
def test_the_score_interval(successes: int, n: int, level: float) -> None:
    expected = proportion_confint(successes, n, alpha=1 - level, method="wilson")

    assert wilson(successes, n, level=level) == pytest.approx(expected)


def test_holms_adjustment() -> None:
    p_values = np.random.default_rng(3).uniform(size=40) ** 3

    assert holm(p_values.tolist()) == pytest.approx(multipletests(p_values, method="holm")[1])
