"""What the metrics are called, and which way they are read."""

from typing import NamedTuple


class Named(NamedTuple):
    """A metric as a person reads it; `unit` says what its axis shows."""

    name: str
    title: str
    better: str
    unit: str

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is the better one."""
        return self.better.startswith("higher")


METRICS = (
    Named("accuracy", "Accuracy", "higher is better", "share of tasks right"),
    Named("brier", "Brier score", "lower is better", "0 is perfect, 2 the worst"),
    Named("ece", "Calibration error (ECE)", "lower is better", "confidence away from accuracy"),
    Named("mae", "Level error (MAE)", "lower is better", "levels away from the right one"),
)
LATENCY = Named("latency", "Latency", "lower is better", "seconds a task, the median")
PARAPHRASES = Named(
    "paraphrases", "Paraphrases alike", "higher is better", "share of pairs with one answer"
)
