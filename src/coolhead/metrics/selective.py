"""Selective prediction: answer only when confident enough."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.vectors import correctness_and_confidence


@dataclass(frozen=True)
class RiskCoverageCurve:
    """Error rate among the answered rows, for every threshold on confidence.

    Attributes
    ----------
    coverage : (m,) share of rows answered, increasing to 1
    risk : (m,) error rate among them
    threshold : (m,) lowest confidence answered, decreasing
    area : mean risk over all coverages (lower is better); rows of equal confidence
        count as answered in random order

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

    def risk_at(self, coverage: float) -> float:
        """Risk at the highest threshold that answers at least this share of rows."""
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage is {coverage}; wanted a share in (0, 1]")
        # Shares are ratios of integers: forgive rounding in the share asked for.
        at = np.searchsorted(self.coverage, coverage - 1e-12)
        return float(self.risk[min(at, len(self.risk) - 1)])

    def plot(self, ax: Any = None, **line: Any) -> Any:
        """Draw it by `coolhead.figures.selective_prediction`; return matplotlib Axes.

        Parameters
        ----------
        ax : Axes to draw on; a new figure by default
        **line : passed to `Axes.plot`, e.g. label="ensemble", color="C1"
        """
        from coolhead.figures import selective_prediction

        return selective_prediction(self, ax, **line)


def risk_coverage_curve(
    labels: ArrayLike, probabilities: ArrayLike
) -> RiskCoverageCurve:
    """Risk and coverage of answering only the most confident rows.

    Takes (labels, (n, k) probabilities) or (correctness, (n,) confidence).

    Examples
    --------
    >>> risk_coverage_curve([1, 0, 1], [0.9, 0.5, 0.8]).risk_at(0.6)
    0.0
    """
    correct, confidence = correctness_and_confidence(labels, probabilities)
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
