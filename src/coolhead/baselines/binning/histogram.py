"""Histogram binning: the confidence of a bin is the accuracy seen in it."""

import numpy as np

from coolhead.baselines.binning.one_score import apply_curves, fit_curves
from coolhead.baselines.classwise.base import ScoreCalibrator, ScoreData
from coolhead.numerics.temperature import Status

Steps = tuple[np.ndarray, np.ndarray]


class HistogramBinning(ScoreCalibrator):
    """Replaces a probability by the share of hits in its bin.

    Parameters
    ----------
    n_bins : number of bins.
    binning : "width" for bins of equal width, "mass" for bins of equal numbers.
    scheme : "top_label" calibrates the confidence, "one_vs_all" every class.

    Attributes
    ----------
    curves_ : list of (edges, values); a value holds up to and with its right edge.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_
    """

    def __init__(
        self, n_bins: int = 15, *, binning: str = "width", scheme: str = "top_label"
    ):
        self.n_bins = n_bins
        self.binning = binning
        self.scheme = scheme

    def _learns_classes(self) -> bool:
        return self.scheme == "one_vs_all"

    def _learn_scores(self, data: ScoreData) -> str:
        if self.binning not in ("width", "mass"):
            raise ValueError(f"binning is {self.binning!r}; wanted 'width' or 'mass'")
        if self.n_bins < 1:
            raise ValueError(f"n_bins is {self.n_bins}; wanted at least 1")
        self.curves_ = fit_curves(data, self.scheme, self._fit_curve)
        return Status.CONVERGED

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Steps:
        inner = np.arange(1, self.n_bins) / self.n_bins
        if self.binning == "mass":
            inner = np.unique(np.quantile(scores, inner))
        index = np.searchsorted(inner, scores, side="left")
        mass = np.bincount(index, weights, len(inner) + 1)
        right = np.bincount(index, weights * hits, len(inner) + 1)
        edges = np.concatenate([[0.0], inner, [1.0]])
        # An empty bin has nothing to say: it keeps its middle.
        values = (edges[:-1] + edges[1:]) / 2
        values[mass > 0] = right[mass > 0] / mass[mass > 0]
        return inner, values

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        return apply_curves(logits, self.scheme, self.curves_, read_steps)


def read_steps(steps: Steps, scores: np.ndarray) -> np.ndarray:
    """Value of the step that each score falls on."""
    inner, values = steps
    return values[np.searchsorted(inner, scores, side="left")]
