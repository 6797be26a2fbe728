"""Expected calibration error as sums over tasks, so that it can be resampled.

The error is the mean over tasks of |sum of (confidence - correct) in a bin|, as the harness's
summary defines it: Guo et al. (2017), "On Calibration of Modern Neural Networks", equation 3.
"""

from typing import TYPE_CHECKING

from jevexp.harness.groups import ECE_BINS

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

    from jevexp.analysis.answers import Answers


def bin_of(confidence: "NDArray[float64]") -> "NDArray[intp]":
    """The bin of each confidence; the last one is closed."""
    import numpy as np

    return np.minimum((confidence * ECE_BINS).astype(np.intp), ECE_BINS - 1)


def gap_columns(answers: "Answers", used: "NDArray[bool_]") -> "NDArray[float64]":
    """Confidence minus correctness of each used task, in the column of its bin.

    Returns:
        Shape (tasks, 10).
    """
    import numpy as np

    columns = np.zeros((len(used), ECE_BINS))
    (rows,) = np.nonzero(used)
    confidence = answers.confidence[rows]
    columns[rows, bin_of(confidence)] = confidence - answers.correct[rows]
    return columns


def error_of(sums: "NDArray[float64]", n: "NDArray[float64]") -> "NDArray[float64]":
    """The error of each row of bin sums over `n` tasks: shapes (rows, 10), (rows,) to (rows,)."""
    import numpy as np

    errors: NDArray[float64] = np.abs(sums).sum(axis=1) / n
    return errors
