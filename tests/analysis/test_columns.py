"""Every table and every plot's data has exactly these columns, in this order."""

from jevexp.analysis.plots import plots
from jevexp.analysis.tables import tables
from tests.analysis.made import Compared

ESTIMATES = ("accuracy", "brier_mean", "ece", "ordinal_mae")
METRIC = (
    "delta low high equivalence_low equivalence_high n clusters p p_adjusted verdict "
    "smallest_effect tasks_needed gained lost"
)


def estimate(name: str) -> str:
    return f"{name} {name}_low {name}_high {name}_n {name}_clusters"


TABLES = {
    "runs.csv": "label run path model alias backend quantization ftype weights_bytes status "
    "started harness readouts concurrency requested attempted answered valid scored correct "
    f"coverage {' '.join(map(estimate, ESTIMATES))} latency_n latency_median_s latency_low_s "
    "latency_high_s latency_p95_s latency_mean_s paraphrase_pairs paraphrases_both_valid "
    "paraphrases_agree agreement agreement_low agreement_high cost_usd "
    "price_per_1000_decisions_usd cost_basis fingerprint identity",
    "pairs.csv": f"baseline candidate metric {METRIC} paired coverage distance_mean distance_max "
    "latency_ratio latency_low latency_high latency_n latency_warnings remarks",
    "matrix.csv": f"first second metric {METRIC}",
    "families.csv": f"label family correct {estimate('accuracy')}",
    "bins.csv": "label lo hi n mean_confidence accuracy low high",
    "identity.csv": "label field verdict value declared observed differs",
    "flips.csv": "baseline candidate task_id right distance baseline_probs candidate_probs",
}
PLOTS = {
    "leaderboard": "metric rank run label value low high n clusters",
    "differences": "metric baseline candidate value low high equivalence_low equivalence_high p "
    "p_adjusted verdict n clusters",
    "pairwise": "first second delta low high p p_adjusted verdict n clusters",
    "families": "run label family correct n accuracy low high",
    "reliability": "run label lo hi n mean_confidence accuracy low high",
    "tradeoff": "cost run label value low high accuracy accuracy_low accuracy_high frontier",
    "latency": "run label percentile seconds",
}


def test_the_columns_of_every_table(five_runs: Compared) -> None:
    assert {table.name: " ".join(table.columns) for table in tables()} == TABLES
    for table in tables():
        for row in table.rows(five_runs.comparison):
            assert len(list(row)) == len(table.columns)


def test_the_columns_of_every_plots_data(five_runs: Compared) -> None:
    drawn = plots(five_runs.comparison)
    assert {name: " ".join(plot.columns) for name, plot in drawn.items()} == PLOTS
    for plot in drawn.values():
        assert plot.rows
        assert {len(row) for row in plot.rows} == {len(plot.columns)}
