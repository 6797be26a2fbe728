"""Bootstrap samples of clusters: seeds, sharing, and intervals against a closed form."""

import numpy as np
import pytest
from scipy.stats import norm, t, ttest_1samp

from jevexp.analysis import intervals
from jevexp.analysis.estimates import mean_columns, ratio
from jevexp.analysis.intervals import Resampling, percentile_interval


def test_resampling_is_seeded_and_keeps_clusters_together() -> None:
    columns = np.asarray([[1.0, 1.0], [-1.0, 1.0], [5.0, 1.0], [-5.0, 1.0]])
    members = np.asarray([0, 0, 1, 1])
    (sums,) = Resampling(members, draws=50, seed=1).sums([columns])
    (again,) = Resampling(members, draws=50, seed=1).sums([columns])

    assert np.array_equal(sums, again)
    assert sums.shape == (50, 2)
    assert not sums[:, 0].any()
    assert (sums[:, 1] == 4).all()


def test_the_interval_of_a_normal_sample_is_that_of_the_t_test() -> None:
    sample = np.random.default_rng(5).normal(size=40)
    (sums,) = Resampling(np.arange(40), draws=10_000, seed=2).sums([mean_columns(sample)])
    interval = percentile_interval(ratio(sums), clusters=40, level=0.95)
    expected = ttest_1samp(sample, 0).confidence_interval(0.95)

    assert interval == pytest.approx((expected.low, expected.high), abs=0.02)


def test_one_cluster_has_no_interval() -> None:
    assert percentile_interval(np.ones(10), clusters=1, level=0.95) is None


def test_samples_that_are_too_many_to_keep_are_the_same_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(3).normal(size=(30, 4))
    members = np.arange(30) // 2
    kept = list(Resampling(members, draws=64, seed=7).sums([values[:, :1], values[:, 1:]]))
    monkeypatch.setattr(intervals, "_BLOCK", 15 * 10)
    redrawn = list(Resampling(members, draws=64, seed=7).sums([values[:, :1], values[:, 1:]]))

    assert [part.shape for part in kept] == [(64, 1), (64, 3)]
    for first, second in zip(kept, redrawn, strict=True):
        assert np.allclose(first, second)


def test_many_columns_are_summed_over_the_same_samples() -> None:
    column = np.random.default_rng(4).normal(size=(20, 1))
    parts = list(Resampling(np.arange(20), draws=30, seed=0).sums([column] * 300))

    assert len(parts) == 300
    assert all(np.allclose(part, parts[0]) for part in parts)


@pytest.mark.parametrize("clusters", [4, 5, 7, 19, 20])
def test_few_clusters_move_the_quantiles_outwards(clusters: int) -> None:
    # Of evenly spread estimates a quantile is its own probability.
    interval = percentile_interval(np.linspace(0, 1, 100_001), clusters=clusters, level=0.95)
    expansion = np.sqrt(clusters / (clusters - 1)) * t.ppf(0.975, clusters - 1)

    assert interval is not None
    assert interval.low == pytest.approx(norm.cdf(-expansion), rel=1e-6)
    assert interval.high == pytest.approx(1 - interval.low)
