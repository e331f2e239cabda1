"""Accuracy against confidence, bin by bin."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.metrics.bins import Binning, bin_edges, bin_index
from coolhead.metrics.vectors import correctness_and_confidence


@dataclass(frozen=True)
class ReliabilityCurve:
    """Accuracy and mean confidence of every bin; NaN where a bin is empty.

    Attributes
    ----------
    edges : (n_bins + 1,) edges of the right-closed bins
    count : (n_bins,) rows in each bin
    accuracy, confidence : (n_bins,) means in each bin
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
        """Standard error of each accuracy, (n_bins,), never zero for a filled bin.

        Computed with one right and one wrong answer added, so that a bin whose
        answers are all right does not look certain.
        """
        count = np.where(self.count > 0, self.count, np.nan)
        smoothed = (self.accuracy * count + 1) / (count + 2)
        return np.sqrt(smoothed * (1 - smoothed) / (count + 2))

    @property
    def expected_calibration_error(self) -> float:
        weighted = np.abs(np.nan_to_num(self.gap)) * self.count
        return float(weighted.sum() / self.count.sum())

    def plot(self, ax: Any = None, **line: Any) -> Any:
        """Draw the curve with standard errors and return the matplotlib Axes.

        Parameters
        ----------
        ax : Axes to draw on; a new figure by default
        **line : passed to `Axes.errorbar`, e.g. label="ensemble", color="C1"
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(4, 4), layout="constrained")
        filled = self.count > 0
        style = {"marker": "o", "markersize": 3, "capsize": 2} | line
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle="--", zorder=0)
        ax.errorbar(
            self.confidence[filled],
            self.accuracy[filled],
            yerr=self.standard_error[filled],
            **style,
        )
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
        ax.set_title(f"ECE {100 * self.expected_calibration_error:.1f} %")
        ax.set_aspect("equal")
        return ax


def reliability_curve(
    labels: Any, probabilities: Any, *, n_bins: int = 15, binning: Binning = "width"
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
