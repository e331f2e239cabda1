"""Accuracy against confidence, bin by bin."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.bins import Binning, bin_edges, bin_index
from coolhead.metrics.vectors import correctness_and_confidence
from coolhead.numerics.proportions import proportion_error


@dataclass(frozen=True)
class ReliabilityCurve:
    """Accuracy and mean confidence of every bin; NaN where a bin is empty.

    Attributes
    ----------
    edges : (n_bins + 1,) edges of the right-closed bins
    count : (n_bins,) rows in each bin
    accuracy, confidence : (n_bins,) means in each bin

    Examples
    --------
    >>> import coolhead as ch
    >>> curve = ch.reliability_curve([1, 0, 1, 1], [0.9, 0.6, 0.7, 0.95], n_bins=2)
    >>> curve.edges, curve.accuracy
    (array([0. , 0.5, 1. ]), array([ nan, 0.75]))
    """

    edges: np.ndarray
    count: np.ndarray
    accuracy: np.ndarray
    confidence: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """Accuracy minus confidence, (n_bins,)."""
        return self.accuracy - self.confidence

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of each accuracy, (n_bins,), never zero for a filled bin."""
        return proportion_error(self.accuracy, self.count)

    @property
    def expected_calibration_error(self) -> float:
        weighted = np.abs(np.nan_to_num(self.gap)) * self.count
        return float(weighted.sum() / self.count.sum())

    def plot(self, ax: Any = None, **bar: Any) -> Any:
        """Draw it by `coolhead.figures.reliability` and return the matplotlib Axes.

        Parameters
        ----------
        ax : Axes to draw on; a new figure by default
        **bar : passed to `Axes.bar`, e.g. label="ensemble"
        """
        from coolhead.figures import reliability

        return reliability(self, ax, **bar)


def reliability_curve(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = 15,
    binning: Binning = "width",
) -> ReliabilityCurve:
    """Accuracy and confidence per bin; arguments as for `expected_calibration_error`.

    Examples
    --------
    >>> curve = reliability_curve([1, 0, 1], [0.9, 0.6, 0.7], n_bins=2)
    >>> curve.count
    array([0, 3])
    """
    correct, confidence = correctness_and_confidence(labels, probabilities)
    index = bin_index(confidence, n_bins, binning)
    count = np.bincount(index, minlength=n_bins)
    filled = np.where(count > 0, count, np.nan)
    return ReliabilityCurve(
        edges=bin_edges(confidence, n_bins, binning),
        count=count,
        accuracy=np.bincount(index, correct, n_bins) / filled,
        confidence=np.bincount(index, confidence, n_bins) / filled,
    )
