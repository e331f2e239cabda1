"""Reliability curves and risk-coverage curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.display import Summarised, Summary
from coolhead.metrics.bins import (
    N_BINS,
    Binning,
    bin_edges,
    bin_rows,
    correctness_and_confidence,
    occurrence_and_probability,
)
from coolhead.numerics.weights import proportion_error


@dataclass(frozen=True, repr=False)
class ReliabilityCurve(Summarised):
    """Accuracy and mean confidence of every bin; NaN where a bin is empty.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the right-closed bins.
    count : ndarray of shape (n_bins,)
        Rows in each bin.
    accuracy, confidence : ndarray of shape (n_bins,)
        Means in each bin.

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

    def _summary(self) -> Summary:
        error = self.expected_calibration_error
        title = f"ReliabilityCurve: {self.count.sum():,} rows, ECE {error:.4f}"
        ends = zip(self.edges[:-1], self.edges[1:], strict=True)
        columns = ends, self.count, self.confidence, self.accuracy
        rows = [
            (f"{a:.2f} to {b:.2f}", str(n), f"{sure:.3f}", f"{right:.3f}")
            for (a, b), n, sure, right in zip(*columns, strict=True)
            if n
        ]
        return Summary(title, ("bin", "rows", "confidence", "accuracy"), rows)

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
        ax : Axes, default=None
            A new figure by default.
        **bar : dict
            Passed to `Axes.bar`, such as label="ensemble".
        """
        from coolhead.figures import reliability

        return reliability(self, ax, **bar)


def reliability_curve(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    classes: Any = None,
    of: Any = None,
) -> ReliabilityCurve:
    """Accuracy and confidence per bin.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    n_bins : int, default=15
        Number of bins.
    binning : {"width", "mass"}, default="width"
        Bins of equal width, or equally filled bins.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.
    of : str or int, default=None
        Name or number of a class: its frequency against its probability, in place of
        the accuracy of the predicted class against its confidence. A rare class hides
        in the latter.

    Returns
    -------
    ReliabilityCurve

    Examples
    --------
    >>> curve = reliability_curve([1, 0, 1], [0.9, 0.6, 0.7], n_bins=2)
    >>> curve.count
    array([0, 3])
    >>> p = [[0.9, 0.1], [0.6, 0.4], [0.9, 0.1]]
    >>> reliability_curve(["lives", "dies", "dies"], p, n_bins=2, of="dies").count
    array([0, 3])
    """
    if of is None:
        correct, confidence = correctness_and_confidence(labels, probabilities, classes)
    else:
        correct, confidence = occurrence_and_probability(
            labels, probabilities, classes, of
        )
    count, right, promised, _ = bin_rows(correct, confidence, n_bins, binning)[:, 0]
    filled = np.where(count > 0, count, np.nan)
    return ReliabilityCurve(
        edges=bin_edges(confidence, n_bins, binning),
        count=count.astype(np.intp),
        accuracy=right / filled,
        confidence=promised / filled,
    )


@dataclass(frozen=True, repr=False)
class RiskCoverageCurve(Summarised):
    """Error rate among the answered rows, for every threshold on confidence.

    Attributes
    ----------
    coverage : ndarray of shape (n_thresholds,)
        Share of rows answered, increasing to 1.
    risk : ndarray of shape (n_thresholds,)
        Error rate among them.
    threshold : ndarray of shape (n_thresholds,)
        Lowest confidence answered, decreasing.
    area : float
        Mean risk over all coverages (lower is better). Rows of equal confidence count
        as answered in random order.

    Examples
    --------
    >>> from coolhead.metrics import risk_coverage_curve
    >>> curve = risk_coverage_curve([1, 1, 0, 1], [0.9, 0.8, 0.6, 0.5])
    >>> curve.coverage, curve.risk.round(2)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([0.  , 0.  , 0.33, 0.25]))
    """

    coverage: np.ndarray
    risk: np.ndarray
    threshold: np.ndarray
    area: float

    def _summary(self) -> Summary:
        title = f"RiskCoverageCurve: area {self.area:.4f}"
        rows = [(f"{c:.0%}", f"{self.risk_at(c):.4f}") for c in (0.25, 0.5, 0.75, 1.0)]
        return Summary(title, ("rows answered", "error rate"), rows)

    def risk_at(self, coverage: float) -> float:
        """Risk at the highest threshold that answers at least this share of rows."""
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage is {coverage}; wanted a share in (0, 1]")
        # Shares are ratios of integers: forgive rounding in the share asked for.
        at = np.searchsorted(self.coverage, coverage - 1e-12)
        return float(self.risk[min(at, len(self.risk) - 1)])

    def plot(self, ax: Any = None, **line: Any) -> Any:
        """Draw it by `coolhead.figures.reliability`; return matplotlib Axes.

        Parameters
        ----------
        ax : Axes, default=None
            A new figure by default.
        **line : dict
            Passed to `Axes.plot`, such as label="ensemble", color="C1".
        """
        from coolhead.figures import selective_prediction

        return selective_prediction(self, ax, **line)


def risk_coverage_curve(
    labels: ArrayLike, probabilities: ArrayLike, *, classes: Any = None
) -> RiskCoverageCurve:
    """Risk and coverage of answering only the most confident rows.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    RiskCoverageCurve

    Examples
    --------
    >>> risk_coverage_curve([1, 0, 1], [0.9, 0.5, 0.8]).risk_at(0.6)
    0.0
    """
    correct, confidence = correctness_and_confidence(labels, probabilities, classes)
    threshold, group, size = np.unique(
        -confidence, return_inverse=True, return_counts=True
    )
    errors = np.bincount(group, 1.0 - correct, len(threshold))
    answered = np.cumsum(size)
    expected = np.cumsum(np.repeat(errors / size, size))
    return RiskCoverageCurve(
        coverage=answered / len(confidence),
        risk=np.cumsum(errors) / answered,
        threshold=-threshold,
        area=float(np.mean(expected / np.arange(1, len(confidence) + 1))),
    )
