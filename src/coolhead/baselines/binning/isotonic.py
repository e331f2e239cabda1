"""Isotonic regression of class probabilities, per class or pooled."""

import numpy as np
from sklearn.isotonic import IsotonicRegression

from coolhead.baselines.binning.one_score import Curve, CurveCalibrator, exact_softmax
from coolhead.baselines.classwise.base import ScoreData
from coolhead.calibrators.parameters import parameters
from coolhead.numerics.solution import Status

# Ten digits: relative distance of scores between which a curve may rise.
CLOSEST = 2.0**-33


@parameters
class IsotonicCalibration(CurveCalibrator):
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

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0])
    >>> cal = ch.baselines.IsotonicCalibration().fit(data.logits, data.labels)
    >>> cal.nll_ < cal.nll_uncalibrated_, len(cal.curves_)
    (True, 3)
    """

    scheme: str = "one_vs_all"

    def _learn_scores(self, data: ScoreData) -> str:
        if self.scheme != "pooled":
            return super()._learn_scores(data)
        scores = exact_softmax(data.logits)
        hits = np.zeros(scores.shape, bool)
        hits[np.arange(len(hits)), data.labels] = True
        weights = np.repeat(data.weights.astype(scores.dtype), self.n_classes_)
        curve = self._fit_curve(scores.ravel(), hits.ravel(), weights)
        self.curves_ = [curve] * self.n_classes_
        return Status.CONVERGED

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Curve:
        """Corner points of the increasing curve of least squares."""
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        for given in (scores, _rounded(scores)):
            model.fit(given, hits.astype(scores.dtype), sample_weight=weights)
            corners, values = model.X_thresholds_, model.y_thresholds_
            # As steep as this, the last bit of a score decides, which NumPy and torch
            # do not share; then scores that are as close are one.
            apart = np.diff(corners) >= CLOSEST * corners[1:]
            if np.all(apart | (np.diff(values) == 0)):
                break
        return corners, values

    def _read_curve(self, curve: Curve, scores: np.ndarray) -> np.ndarray:
        """Interpolate between the corner points; constant beyond them."""
        return np.interp(scores, *curve)


def _rounded(scores: np.ndarray) -> np.ndarray:
    """Scores to as many digits as neighbours on a curve are apart."""
    fraction, exponent = np.frexp(scores)
    return np.ldexp(np.round(fraction / CLOSEST) * CLOSEST, exponent)
