"""What a comparison comes to, as plain data: the terminal, JSON, CSV and the page all read it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from jevexp.analysis.estimates import Difference, Estimate, Options
from jevexp.analysis.intervals import Interval
from jevexp.analysis.metrics import ACCURACY, Metric


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of top-label confidence from `lo` to `hi`; means are null where `n` is 0.

    `interval` is of the accuracy.
    """

    lo: float
    hi: float
    n: int
    mean_confidence: float | None
    accuracy: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Family:
    """The accuracy of one run on one family; null where none of its tasks was scored."""

    name: str
    correct: int
    accuracy: Estimate | None


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Seconds of all attempts of one run.

    `median` has a distribution-free interval; `quantiles` are the 0th to the 100th percentile, so
    that the curve through them is the distribution.
    """

    n: int
    median: Estimate
    p95: float
    mean: float
    quantiles: list[float]


@dataclass(frozen=True, slots=True)
class Paraphrases:
    """How often both wordings of a question got one answer, of the pairs validly answered."""

    pairs: int
    both_valid: int
    agree: int
    agreement: Estimate | None


@dataclass(frozen=True, slots=True)
class IdentityField:
    """One field of who answered.

    `differs` says that the runs of the comparison do not all have this value. `value` is what was
    observed, else what was declared; all three are text, null where unknown.
    """

    name: str
    verdict: str | None
    value: str | None
    declared: str | None
    observed: str | None
    differs: bool


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """One run by itself.

    `label` is short and unique among the runs. `estimates` has every metric by its name; in JSON
    each is a field of the run. Accuracy counts failures as wrong and its interval is Wilson's at
    the sample size that the clusters leave; `accuracy_independent` is the plain one. `settings`
    are the overrides that are not the same in all runs. `cost_usd` is null where one cost is
    unknown. `weights_bytes` is null where nobody says it.
    """

    path: str
    run: str
    label: str
    model: str
    alias: str | None
    backend: str
    quantization: str | None
    ftype: str | None
    weights_bytes: int | None
    status: str
    started: str
    harness: str
    readouts: list[str]
    concurrency: int
    settings: dict[str, str]
    requested: int
    attempted: int
    answered: int
    valid: int
    scored: int
    correct: int
    coverage: float
    estimates: dict[str, Estimate | None]
    accuracy_independent: Interval | None
    bins: list[Bin]
    families: list[Family]
    latency: LatencySummary | None
    paraphrases: Paraphrases | None
    cost_usd: float | None
    price_per_1000_decisions_usd: float | None
    cost_basis: list[str]
    fingerprint: str | None
    identity: str | None
    identity_fields: list[IdentityField]

    @property
    def accuracy(self) -> Estimate | None:
        """What runs are ranked by."""
        return self.estimates[ACCURACY.name]


@dataclass(frozen=True, slots=True)
class Flip:
    """A task that one side gets right and the other wrong; a side without an answer has null."""

    task_id: str
    right: str
    baseline: dict[str, float] | None
    candidate: dict[str, float] | None
    distance: float | None


@dataclass(frozen=True, slots=True)
class LatencyRatio:
    """Geometric mean over tasks of candidate's seconds over baseline's, and its interval.

    `interval` is at 1 - alpha, `one_sided` at 1 - 2 alpha: each of its ends is a bound at
    1 - alpha. `warnings` say why the two sides' seconds may not be comparable.
    """

    ratio: float
    interval: Interval | None
    one_sided: Interval | None
    n: int
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class PairResult:
    """A candidate held against the baseline; both are indices of the comparison's runs.

    `paired` counts the tasks that both attempted, `coverage` is their share of the requested ones,
    `clusters` counts the paraphrase groups among them.
    """

    baseline: int
    candidate: int
    remarks: list[str]
    paired: int
    coverage: float
    clusters: int
    metrics: list[Difference]
    distance_mean: float | None
    distance_max: float | None
    flips: list[Flip]
    latency: LatencyRatio | None

    def difference(self, metric: Metric) -> Difference | None:
        """The difference in a metric; None where it could not be computed."""
        return next((each for each in self.metrics if each.name == metric.name), None)


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The accuracy of `second` minus that of `first`; both are indices of the runs.

    There is one cell for every two runs, first < second; null where no task is scored on both.
    """

    first: int
    second: int
    accuracy: Difference | None


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer of a run: what it chose and how sure it was, its largest probability."""

    task_id: str
    predicted: str | None
    confidence: float
    probs: dict[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs on the same tasks: each by itself, against the first one, and all against all.

    `tests` is how many p values were adjusted together. `mistakes` are those of one run by itself,
    the surest first; between several runs, what is told are the flips of each pair.
    """

    options: Options
    dataset: str
    dataset_hash: str
    tests: int
    runs: list[RunStatistics]
    pairs: list[PairResult]
    matrix: list[MatrixCell]
    mistakes: list[Mistake] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The comparison as plain JSON."""
        plain = asdict(self)
        for run in plain["runs"]:
            run.update(run.pop("estimates"))
        return plain
