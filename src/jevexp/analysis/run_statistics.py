"""One run by itself: what it scored, how sure that is, and how long it took."""

import math

from jevexp.analysis.comparison import (
    Bin,
    Family,
    IdentityField,
    LatencySummary,
    Paraphrases,
    RunStatistics,
)
from jevexp.analysis.conditions import known_field, text_of
from jevexp.analysis.estimates import Estimate, Sums, bin_of, known, share_right, side_by_side
from jevexp.analysis.intervals import clustered_wilson, median_interval, wilson
from jevexp.analysis.metrics import METRICS, Metric
from jevexp.analysis.runs import Answers, Axis, FinishedRun
from jevexp.harness.summary import ECE_BINS


class RunSample:
    """What one run answered, to be summed over the draws and then described.

    `index` is its place among the runs of the comparison.
    """

    def __init__(self, index: int, run: FinishedRun, answers: Answers, axis: Axis) -> None:
        self.index, self.run, self.answers, self._axis = index, run, answers, axis
        self._judged = known(answers.correct)
        # What has to be summed over the draws: shape (tasks, columns).
        self.columns, self._places = side_by_side(
            {name: metric.sampled(answers) for name, metric in METRICS.items()}
        )

    def statistics(
        self, sums: Sums, label: str, settings: dict[str, str], identity: list[IdentityField]
    ) -> RunStatistics:
        """Everything that is known about the run; `sums` are of its columns.

        `label`, `settings` and `identity` are what tells it from the other runs.
        """
        run, answers, manifest = self.run, self.answers, self.run.manifest
        records = run.records.values()
        costs = [record.cost_usd for record in records if record.cost_usd is not None]
        cost = math.fsum(costs) if costs and len(costs) == len(records) else None
        requested = manifest.counts.requested
        scored, correct = int(self._judged.sum()), int((answers.correct == 1).sum())
        size = known_field(manifest, "weights.bytes") or known_field(manifest, "tensor_bytes")
        return RunStatistics(
            path=str(run.path),
            run=manifest.run,
            label=label,
            model=manifest.model.declared.name,
            alias=manifest.model.requested,
            backend=manifest.backend.name,
            quantization=manifest.model.declared.quantization.label,
            ftype=text_of(known_field(manifest, "quantization.ftype")),
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
            scored=scored,
            correct=correct,
            coverage=len(records) / requested if requested else 0.0,
            estimates={name: self._estimate(metric, sums) for name, metric in METRICS.items()},
            accuracy_independent=wilson(correct, scored, level=sums.level) if scored else None,
            bins=self._bins(sums),
            families=self._families(sums),
            latency=self._latency(sums),
            paraphrases=self._paraphrases(sums.level),
            cost_usd=cost,
            price_per_1000_decisions_usd=None if cost is None else 1000 * cost / len(records),
            cost_basis=manifest.cost_basis,
            fingerprint=manifest.fingerprint.value if manifest.fingerprint else None,
            identity=manifest.identity.status.value if manifest.identity else None,
            identity_fields=identity,
        )

    def _estimate(self, metric: Metric, sums: Sums) -> Estimate | None:
        estimate = metric.estimate(self.answers, sums.of(self._places[metric.name]))
        if estimate is None and metric.of_task and self.run.summary:
            # What the run's own summary says, where the tasks are not here to resample it.
            value = metric.of_summary(self.run.summary)
            n = self.run.summary.calibration_n
            return None if value is None else Estimate(value, None, n, n)
        return estimate

    def _bins(self, sums: Sums) -> list[Bin]:
        calibrated = known(self.answers.confidence)
        if not calibrated.any():
            return []
        confidence = self.answers.confidence[calibrated]
        correct = self.answers.correct[calibrated]
        members = self._axis.members[calibrated]
        places = bin_of(confidence)
        bins = []
        for index in range(ECE_BINS):
            here = places == index
            mean = accuracy = interval = None
            if here.any():
                mean, accuracy = float(confidence[here].mean()), float(correct[here].mean())
                interval = clustered_wilson(correct[here], members[here], level=sums.level)
            edges = (index / ECE_BINS, (index + 1) / ECE_BINS)
            bins.append(Bin(*edges, int(here.sum()), mean, accuracy, interval))
        return bins

    def _families(self, sums: Sums) -> list[Family]:
        import numpy as np

        records = self.run.records
        names = np.asarray(
            [records[name].family if name in records else "" for name in self._axis.ids]
        )
        families = []
        for name in sorted({record.family for record in records.values()}):
            used = self._judged & (names == name)
            correct = int((self.answers.correct[used] == 1).sum())
            families.append(Family(name, correct, share_right(self.answers, used, sums)))
        return families

    def _latency(self, sums: Sums) -> LatencySummary | None:
        import numpy as np

        attempted = self.answers.attempted
        ranked = np.sort(self.answers.latency[attempted])
        if not len(ranked):
            return None
        quantiles = np.quantile(ranked, np.linspace(0, 1, 101)).tolist()
        interval = median_interval(ranked, level=sums.level)
        median = Estimate(quantiles[50], interval, len(ranked), sums.clusters(attempted))
        return LatencySummary(len(ranked), median, quantiles[95], float(ranked.mean()), quantiles)

    def _paraphrases(self, level: float) -> Paraphrases | None:
        pairs = self.run.summary.paraphrase_consistency if self.run.summary else None
        if not pairs or not pairs.pairs:
            return None
        both, agree = pairs.both_valid, pairs.agree
        agreement = None
        if both:
            agreement = Estimate(agree / both, wilson(agree, both, level=level), both, both)
        return Paraphrases(pairs.pairs, both, agree, agreement)
