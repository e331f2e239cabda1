"""ETS: a mixture of the cooled, the original and the uniform distribution."""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from coolhead.baselines.classwise.base import ScoreCalibrator, ScoreData
from coolhead.calibrators.parameters import parameters
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice
from coolhead.numerics.masks import class_counts
from coolhead.numerics.softmax import log_loss_rows, softmax
from coolhead.numerics.temperature import fit_temperature


@parameters
class EnsembleTemperatureScaling(ScoreCalibrator):
    """w₁ softmax(z/T) + w₂ softmax(z) + w₃/K; the predicted class does not change.

    Parameters
    ----------
    loss : "nll" or "brier", what the mixture weights minimise.

    Attributes
    ----------
    temperature_ : float, by likelihood.
    mixture_ : (3,) weights, not negative, of sum one.
    accuracy_change_, status_, nll_, nll_uncalibrated_ : of the fit set.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.EnsembleTemperatureScaling().fit(data.logits, data.labels)
    >>> round(float(cal.mixture_.sum()), 6), cal.accuracy_change_
    (1.0, 0.0)
    """

    loss: str = "nll"

    def _learn_scores(self, data: ScoreData) -> str:
        check_choice(self.loss, "loss", "nll", "brier")
        fitted = fit_temperature(data.logits, data.labels, sample_weight=data.weights)
        self.temperature_ = fitted.temperature
        shares = data.weights / data.weights.sum()
        if self.loss == "nll":
            self.mixture_ = _mixture_by_likelihood(data, self.temperature_, shares)
        else:
            self.mixture_ = _mixture_by_squares(data, self.temperature_, shares)
        return fitted.status

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        cooled, plain, even = self.mixture_
        mixed = cooled * softmax(logits, self.temperature_)
        mixed += plain * softmax(logits, 1.0) + even * uniform(logits)
        return mixed / mixed.sum(axis=1, keepdims=True)


def uniform(block: np.ndarray) -> np.ndarray:
    """The same probability for every class that is not masked."""
    free = np.isfinite(block)
    return free / free.sum(axis=1, keepdims=True)


def _mixture_by_likelihood(
    data: ScoreData, temperature: float, shares: np.ndarray
) -> np.ndarray:
    """Only the label's three probabilities enter: a convex problem in (n, 3)."""
    own = np.column_stack(
        [
            np.exp(-log_loss_rows(data.logits, data.labels, temperature)),
            np.exp(-log_loss_rows(data.logits, data.labels, 1.0)),
            1 / class_counts(data.logits),
        ]
    )
    own = np.maximum(own, 1e-300)

    def objective(mixture: np.ndarray) -> tuple[float, np.ndarray]:
        mixed = own @ mixture
        return float(-shares @ np.log(mixed)), -(shares / mixed) @ own

    return _on_simplex(objective)


def _mixture_by_squares(
    data: ScoreData, temperature: float, shares: np.ndarray
) -> np.ndarray:
    """The Brier score is quadratic in the mixture: its 3×3 matrix is all it needs."""
    square, own = np.zeros((3, 3)), np.zeros(3)
    for rows in row_blocks(*data.logits.shape):
        block, share = data.logits[rows], shares[rows]
        parts = [
            softmax(block, temperature),
            softmax(block, 1.0),
            uniform(block),
        ]
        each = np.arange(len(block)), data.labels[rows]
        for i, left in enumerate(parts):
            own[i] += share @ left[each]
            for j, right in enumerate(parts):
                square[i, j] += share @ np.vecdot(left, right)

    def objective(mixture: np.ndarray) -> tuple[float, np.ndarray]:
        product = square @ mixture
        return float(mixture @ product - 2 * own @ mixture), 2 * (product - own)

    return _on_simplex(objective)


def _on_simplex(objective: Any) -> np.ndarray:
    """Minimise a convex function of three shares, from temperature scaling alone."""
    start = np.array([1.0, 0.0, 0.0])
    found: Any = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 200},
    )
    mixture = np.clip(found.x, 0.0, 1.0)
    mixture /= mixture.sum()
    better = np.isfinite(mixture).all() and objective(mixture)[0] <= objective(start)[0]
    return mixture if better else start
