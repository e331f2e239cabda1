"""Platt scaling: a logistic curve of the score."""

import warnings
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from coolhead.baselines.binning.one_score import replace_top
from coolhead.baselines.classwise.base import ScoreCalibrator, ScoreData
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.solution import Status


class PlattScaling(ScoreCalibrator):
    """sigmoid(a·s + b), with Platt's smoothed targets.

    With two classes s is the difference of the logits. With more, s is the logit of
    the confidence, the target is whether the prediction is right, and the other
    classes share what is left; the prediction stays.

    Attributes
    ----------
    slope_, intercept_ : a and b.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0], n_classes=2)
    >>> cal = ch.baselines.PlattScaling().fit(data.logits, data.labels)
    >>> round(cal.slope_, 1)    # about 1/T
    0.5
    """

    def _learn_scores(self, data: ScoreData) -> str:
        scores, top = scores_of(data.logits)
        hits = (data.labels == top) if self.n_classes_ > 2 else data.labels == 1
        self.slope_, self.intercept_ = fit_logistic(scores, hits, data.weights)
        constant = np.ptp(scores) == 0
        return Status.CONSTANT_LOGITS if constant else Status.CONVERGED

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        scores, top = scores_of(logits)
        wanted = _sigmoid(self.slope_ * scores + self.intercept_)
        if self.n_classes_ == 2:
            return np.column_stack([1 - wanted, wanted])
        return replace_top(logits, top, wanted)


def scores_of(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Score (n,) in float64 and the class it speaks about (n,)."""
    if logits.shape[1] == 2:
        apart = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        return _unless_certain(apart), np.ones(len(logits), np.intp)
    top = logits.argmax(axis=1)
    scores = np.empty(len(logits))
    for rows in row_blocks(*logits.shape):
        # log conf - log(1 - conf) is what the top has over all others together, and
        # this way a confidence near one keeps its digits.
        others = logits[rows].astype(np.float64)
        each = np.arange(len(others)), top[rows]
        others -= others[each][:, None]
        others[each] = -np.inf
        scores[rows] = -logsumexp(others, axis=1)
    return _unless_certain(scores), top


def _unless_certain(scores: np.ndarray) -> np.ndarray:
    """Where all other classes are masked, one is certain, whatever the curve says."""
    return np.where(np.isfinite(scores), scores, 0.0)


def fit_logistic(
    scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Slope and intercept by likelihood, with targets (n₊+1)/(n₊+2) and 1/(n₋+2)."""
    positive, negative = float(weights @ hits), float(weights @ ~hits)
    targets = np.where(hits, (positive + 1) / (positive + 2), 1 / (negative + 2))
    center, unit = scores.mean(), scores.std() or 1.0
    column = ((scores - center) / unit)[:, None]
    # A fractional target is one row of each kind, weighted by its share.
    model: Any = LogisticRegression(C=np.inf, max_iter=1000, tol=1e-8)
    with warnings.catch_warnings():
        # scikit-learn 1.8 warns of its own way to say that there is no penalty.
        warnings.filterwarnings("ignore", "Setting penalty=None", UserWarning)
        model.fit(
            np.concatenate([column, column]),
            np.repeat([1, 0], len(scores)),
            sample_weight=np.concatenate([weights * targets, weights * (1 - targets)]),
        )
    slope = float(model.coef_[0, 0] / unit)
    return slope, float(model.intercept_[0] - slope * center)


def _sigmoid(scores: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -scores))
