"""Fit softmax(A z + c) by likelihood, close to temperature scaling.

The problem is convex. It starts at the set-level temperature and every penalty is
measured from there, so that the answer does not depend on the unit of the logits and
is never less likely than temperature scaling.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from coolhead.baselines.classwise.base import ScoreCalibrator, ScoreData
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.single_thread import one_blas_thread
from coolhead.numerics.slopes import affine_slopes, filled
from coolhead.numerics.temperature import fit_temperature

Gradient = tuple[float, np.ndarray]


class Start(NamedTuple):
    """Temperature scaling, where the descent begins.

    present : (k,) the classes that have rows; square, spread : (k,) about how much the
    loss bends along each scale and each bias.
    """

    inverse: float
    present: np.ndarray
    square: np.ndarray
    spread: np.ndarray


class AffineCalibrator(ScoreCalibrator):
    """softmax(A z + c), fitted by likelihood from the set-level temperature on.

    A subclass writes `_descend`.

    Attributes
    ----------
    slope_ : (k, k) A, or (k,) its diagonal; bias_ : (k,) c. Classes without rows keep
        the set-level scale and no bias.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_
    """

    learns_classes = True
    slope_: np.ndarray
    bias_: np.ndarray

    def _learn_scores(self, data: ScoreData) -> str:
        fitted = fit_temperature(data.logits, data.labels, sample_weight=data.weights)
        present = np.ones(data.logits.shape[1], bool)
        present[data.absent] = False
        inverse = 1 / fitted.temperature
        self._descend(data, Start(inverse, present, *curvatures(data, inverse)))
        return fitted.status

    def _descend(self, data: ScoreData, start: Start) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define its fit")

    @one_blas_thread()
    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        values = filled(logits)
        slope = self.slope_
        scores = (values * slope if slope.ndim == 1 else values @ slope.T) + self.bias_
        scores[np.isneginf(logits)] = -np.inf
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


def mean_loss(
    data: ScoreData, slope: np.ndarray, bias: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Weighted mean loss of softmax(A z + c), and its gradient by A and by c."""
    total = float(data.weights.sum())
    loss, by_slope, by_bias = affine_slopes(
        data.logits, data.labels, data.weights, slope, bias
    )
    return loss / total, by_slope / total, by_bias / total


def curvatures(data: ScoreData, inverse: float) -> tuple[np.ndarray, np.ndarray]:
    """About how much the loss bends along each scale and each bias, (k,) each.

    In units of its inverse root every parameter is equally steep, and L-BFGS needs
    few steps.
    """
    shares = np.bincount(data.labels, data.weights, data.logits.shape[1])
    shares = shares / shares.sum()
    bias = shares * (1 - shares)
    squares = np.zeros(data.logits.shape[1])
    for rows in row_blocks(*data.logits.shape):
        block = filled(data.logits[rows])
        squares += np.einsum("ij,ij->j", block, block, dtype=np.float64)
    return inverse**2 * squares / len(data.logits), bias


def centred_bias(values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Biases with mean zero over the classes that have rows, zero for the others.

    A common shift of the present classes would push the absent ones towards
    probability zero; the mean is therefore taken out.
    """
    return np.where(present, values - values[present].mean(), 0.0)


def descend(
    objective: Callable[[np.ndarray], Gradient],
    start: np.ndarray,
    bend: np.ndarray,
    *,
    tolerance: float = 1e-10,
    limits: np.ndarray | None = None,
) -> np.ndarray:
    """Minimise with L-BFGS in units of 1/√bend, within ±`limits` where given.

    A result that is no better than the start is refused.
    """
    unit = 1 / np.sqrt(np.maximum(bend, 1e-12))

    def scaled(parameters: np.ndarray) -> Gradient:
        loss, gradient = objective(parameters * unit)
        return loss, gradient * unit

    reach = np.full(len(unit), np.inf) if limits is None else limits / unit
    found: Any = minimize(
        scaled,
        start / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([-reach, reach]),  # pyright: ignore[reportArgumentType]
        options={"maxiter": 300, "ftol": tolerance, "gtol": 1e-7, "maxcor": 20},
    )
    return found.x * unit if found.fun <= objective(start)[0] else start
