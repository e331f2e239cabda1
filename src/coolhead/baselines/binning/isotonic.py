"""Isotonic regression of class probabilities, per class or pooled."""

import numpy as np
from sklearn.isotonic import IsotonicRegression

from coolhead.baselines.binning.one_score import (
    apply_curves,
    exact_softmax,
    fit_curves,
)
from coolhead.baselines.classwise.base import ScoreCalibrator, ScoreData
from coolhead.numerics.temperature import Status

Points = tuple[np.ndarray, np.ndarray]


class IsotonicCalibration(ScoreCalibrator):
    """Increasing curves through the class probabilities.

    Parameters
    ----------
    scheme : "one_vs_all" fits a curve per class and may change the predicted class;
        "pooled" (IRM) fits one curve to all n·k pairs and keeps the order of the
        classes; "top_label" calibrates the confidence alone.

    Attributes
    ----------
    curves_ : list of (scores, values) between which one interpolates; None for a
        class without rows, which keeps its probability.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_
    """

    def __init__(self, scheme: str = "one_vs_all"):
        self.scheme = scheme

    def _learns_classes(self) -> bool:
        return self.scheme == "one_vs_all"

    def _learn_scores(self, data: ScoreData) -> str:
        if self.scheme == "pooled":
            curve = _fit_pooled(data)
            self.curves_ = [curve] * self.n_classes_
        else:
            self.curves_ = fit_curves(data, self.scheme, fit_points)
        return Status.CONVERGED

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        scheme = "one_vs_all" if self.scheme == "pooled" else self.scheme
        return apply_curves(logits, scheme, self.curves_, read_points)


def fit_points(scores: np.ndarray, hits: np.ndarray, weights: np.ndarray) -> Points:
    """Corner points of the increasing curve of least squares."""
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(scores, hits.astype(scores.dtype), sample_weight=weights)
    return model.X_thresholds_, model.y_thresholds_


def read_points(points: Points, scores: np.ndarray) -> np.ndarray:
    """Interpolate between the corner points; constant beyond them."""
    return np.interp(scores, *points)


def _fit_pooled(data: ScoreData) -> Points:
    n_classes = data.logits.shape[1]
    scores = exact_softmax(data.logits)
    hits = np.zeros(scores.shape, bool)
    hits[np.arange(len(hits)), data.labels] = True
    weights = np.repeat(data.weights.astype(scores.dtype), n_classes)
    return fit_points(scores.ravel(), hits.ravel(), weights)
