"""One run by itself: what it scored, how sure that is, and how long it took."""

import math
from typing import TYPE_CHECKING

from jevexp.analysis.answers import Answers, Axis
from jevexp.analysis.calibration import bin_of, error_of, gap_columns
from jevexp.analysis.comparison import (
    Bin,
    Estimate,
    Family,
    IdentityField,
    LatencySummary,
    Paraphrases,
    RunStatistics,
)
from jevexp.analysis.metric import Options, mean_columns, ratio
from jevexp.analysis.runs import FinishedRun
from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.statistics.proportions import clustered_wilson, wilson
from jevexp.analysis.statistics.quantiles import median_interval
from jevexp.analysis.statistics.resampling import percentile_interval
from jevexp.analysis.who import known, text_of
from jevexp.harness.groups import ECE_BINS

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.typing import NDArray


class RunSample:
    """What one run answered, to be summed over the draws and then described."""

    def __init__(self, run: FinishedRun, answers: Answers, axis: Axis, options: Options) -> None:
        import numpy as np

        self._run, self._answers, self._axis = run, answers, axis
        self._level = 1 - options.alpha
        self._judged = ~np.isnan(answers.correct)
        self._calibrated = ~np.isnan(answers.confidence)

    @property
    def columns(self) -> "NDArray[float64]":
        """What has to be summed over the draws: shape (tasks, 15)."""
        import numpy as np

        return np.hstack(
            [
                mean_columns(self._answers.brier),
                mean_columns(self._answers.level_error),
                gap_columns(self._answers, self._calibrated),
                self._calibrated[:, np.newaxis],
            ]
        )

    def statistics(
        self,
        sums: "NDArray[float64]",
        *,
        label: str,
        settings: dict[str, str],
        identity_fields: list[IdentityField],
    ) -> RunStatistics:
        """Everything that is known about the run.

        Args:
            sums: shape (draws, 15), the sums of the columns over each draw.
            label: its name among the runs.
            settings: its overrides that differ among the runs.
            identity_fields: who answered, marked against the other runs.
        """
        run, answers, manifest = self._run, self._answers, self._run.manifest
        records = run.records.values()
        costs = [record.cost_usd for record in records if record.cost_usd is not None]
        cost = math.fsum(costs) if costs and len(costs) == len(records) else None
        requested = manifest.counts.requested
        size = known(manifest, "weights.bytes") or known(manifest, "tensor_bytes")
        return RunStatistics(
            path=str(run.path),
            run=manifest.run,
            label=label,
            model=manifest.model.declared.name,
            alias=manifest.model.requested,
            backend=manifest.backend.name,
            quantization=manifest.model.declared.quantization.label,
            ftype=text_of(known(manifest, "quantization.ftype")),
            weights_bytes=size if type(size) is int and size > 0 else None,
            status=manifest.status.value,
            started=manifest.started,
            harness=manifest.harness.name,
            readouts=run.readouts,
            concurrency=manifest.concurrency,
            settings=settings,
            requested=requested,
            attempted=len(records),
            answered=sum(record.ok for record in records),
            valid=sum(record.valid for record in records),
            scored=int(self._judged.sum()),
            correct=int((answers.correct == 1).sum()),
            coverage=len(records) / requested if requested else 0.0,
            accuracy=self._accuracy(self._judged),
            accuracy_independent=self._accuracy_independent(),
            brier=self._mean(answers.brier, sums[:, 0:2]) or _stored("brier_mean", run),
            ece=self._ece(sums[:, 4:]),
            bins=self._bins(),
            mae=self._mean(answers.level_error, sums[:, 2:4]) or _stored("ordinal_mae", run),
            families=self._families(),
            latency=self._latency(),
            paraphrases=self._paraphrases(),
            cost_usd=cost,
            price_per_1000_decisions_usd=None if cost is None else 1000 * cost / len(records),
            cost_basis=manifest.cost_basis,
            fingerprint=manifest.fingerprint.value if manifest.fingerprint else None,
            identity=manifest.identity.status.value if manifest.identity else None,
            identity_fields=identity_fields,
        )

    def _clusters(self, used: "NDArray[bool_]") -> int:
        return len(set(self._axis.members[used].tolist()))

    def _accuracy(self, used: "NDArray[bool_]") -> Estimate | None:
        """Accuracy over some of the tasks, with Wilson's interval at the clusters' sample size."""
        if not used.any():
            return None
        values = self._answers.correct[used]
        interval = clustered_wilson(values, self._axis.members[used], level=self._level)
        return Estimate(float(values.mean()), interval, len(values), self._clusters(used))

    def _mean(self, values: "NDArray[float64]", sums: "NDArray[float64]") -> Estimate | None:
        import numpy as np

        present = ~np.isnan(values)
        if not present.any():
            return None
        clusters = self._clusters(present)
        interval = percentile_interval(ratio(sums), clusters=clusters, level=self._level)
        return Estimate(float(values[present].mean()), interval, int(present.sum()), clusters)

    def _ece(self, sums: "NDArray[float64]") -> Estimate | None:
        import numpy as np

        if not self._calibrated.any():
            return None
        gaps = gap_columns(self._answers, self._calibrated).sum(axis=0)[np.newaxis]
        n = int(self._calibrated.sum())
        clusters = self._clusters(self._calibrated)
        counts = np.where(sums[:, -1] > 0, sums[:, -1], np.nan)
        interval = percentile_interval(
            error_of(sums[:, :-1], counts), clusters=clusters, level=self._level
        )
        return Estimate(float(error_of(gaps, np.asarray([n]))[0]), interval, n, clusters)

    def _bins(self) -> list[Bin]:
        if not self._calibrated.any():
            return []
        places = bin_of(self._answers.confidence[self._calibrated])
        confidence = self._answers.confidence[self._calibrated]
        correct = self._answers.correct[self._calibrated]
        members = self._axis.members[self._calibrated]
        rows = []
        for index in range(ECE_BINS):
            here = places == index
            n = int(here.sum())
            rows.append(
                Bin(
                    lo=index / ECE_BINS,
                    hi=(index + 1) / ECE_BINS,
                    n=n,
                    mean_confidence=float(confidence[here].mean()) if n else None,
                    accuracy=float(correct[here].mean()) if n else None,
                    interval=clustered_wilson(correct[here], members[here], level=self._level)
                    if n
                    else None,
                )
            )
        return rows

    def _families(self) -> list[Family]:
        import numpy as np

        records = self._run.records
        names = np.asarray(
            [records[name].family if name in records else "" for name in self._axis.ids]
        )
        found = []
        for name in sorted({record.family for record in records.values()}):
            used = self._judged & (names == name)
            correct = int((self._answers.correct[used] == 1).sum())
            found.append(Family(name, correct, self._accuracy(used)))
        return found

    def _latency(self) -> LatencySummary | None:
        import numpy as np

        ranked = np.sort(self._answers.latency[self._answers.attempted])
        if not len(ranked):
            return None
        quantiles = np.quantile(ranked, np.linspace(0, 1, 101)).tolist()
        median = Estimate(
            quantiles[50],
            median_interval(ranked, level=self._level),
            len(ranked),
            self._clusters(self._answers.attempted),
        )
        return LatencySummary(len(ranked), median, quantiles[95], float(ranked.mean()), quantiles)

    def _accuracy_independent(self) -> Interval | None:
        n = int(self._judged.sum())
        correct = int((self._answers.correct == 1).sum())
        return wilson(correct, n, level=self._level) if n else None

    def _paraphrases(self) -> Paraphrases | None:
        summary = self._run.summary
        pairs = summary.paraphrase_consistency if summary else None
        if not pairs or not pairs.pairs:
            return None
        both, agree = pairs.both_valid, pairs.agree
        agreement = (
            Estimate(agree / both, wilson(agree, both, level=self._level), both, both)
            if both
            else None
        )
        return Paraphrases(pairs.pairs, both, agree, agreement)


def _stored(name: str, run: FinishedRun) -> Estimate | None:
    """What the run's own summary says, where the tasks are not here to resample it."""
    value = run.summary.number(name) if run.summary else None
    if run.summary is None or value is None:
        return None
    n = run.summary.calibration_n
    return Estimate(value, None, n, n)
