"""Calibrators that change the class scores: mixtures, and affine maps of logits."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from coolhead.calibrators.base import Answer, Calibrator, remember_losses
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import NotNegative, parameters
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_logit_values
from coolhead.numerics.moments import class_counts, hide_masked, without_masked
from coolhead.numerics.search import affine_slopes, filled
from coolhead.numerics.softmax import log_loss_rows, softmax
from coolhead.numerics.solver import BOUND
from coolhead.numerics.temperature import fit_temperature


class ScoreData(NamedTuple):
    """Rows of `CalibrationData` with weights of mean one and masked logits at -inf."""

    logits: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    absent: np.ndarray
    reach: float


class ScoreCalibrator(Calibrator):
    """Maps logits to probabilities; the predicted class may change.

    A subclass writes `_learn_scores(data) -> status` and `_probabilities`, which gets a
    block of checked logits (m, k), -inf for masked classes, and returns rows that sum
    to one.

    Attributes
    ----------
    learns_classes : bool
        Whether every class has parameters of its own.
    accuracy_change_ : float
        Accuracy after minus before calibration, on the fit set.
    absent_classes_ : ndarray of int
        Classes without a row in the fit set; they keep their scores.
    reach_ : float
        How far below its row's largest a logit may lie and not count as masked.
    status_, nll_, nll_uncalibrated_
        Of the fit set.
    """

    learns_classes: bool = False
    reach_: float

    def _learn(self, data: CalibrationData) -> None:
        scores = score_data(data)
        self.absent_classes_, self.reach_ = scores.absent, scores.reach
        if len(scores.absent) and self.learns_classes:
            warnings.warn(_absent_message(self, scores.absent), stacklevel=5)
        self._judge(scores, self._learn_scores(scores))

    def _predict(self, logits: np.ndarray, features: Any) -> Answer:
        probabilities = np.empty(logits.shape, np.result_type(logits, np.float32))
        for rows, block in self._blocks(logits):
            probabilities[rows] = block
        return probabilities, None

    def _confidence(
        self, logits: np.ndarray, features: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        largest, predicted = np.empty(len(logits)), np.empty(len(logits), np.intp)
        for rows, block in self._blocks(logits):
            largest[rows], predicted[rows] = block.max(axis=1), block.argmax(axis=1)
        return largest, predicted

    def _blocks(self, logits: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows and their probabilities, exactly zero for masked classes."""
        check_logit_values(logits, "logits")
        for rows in row_blocks(*logits.shape):
            block = hide_masked(logits[rows], self.reach_)
            yield rows, without_masked(self._probabilities(block), block)

    def _learn_scores(self, data: ScoreData) -> str:
        raise NotImplementedError(f"{type(self).__name__} learns nothing")

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not define its map")

    def _judge(self, data: ScoreData, status: str) -> None:
        """Compare loss and accuracy with those of the plain softmax."""
        losses, change = np.empty(len(data.labels)), np.empty(len(data.labels))
        for rows in row_blocks(*data.logits.shape):
            labels = data.labels[rows]
            after = without_masked(
                self._probabilities(data.logits[rows]), data.logits[rows]
            )
            own = after[np.arange(len(labels)), labels].astype(np.float64)
            losses[rows] = -np.log(np.maximum(own, np.finfo(float).tiny))
            right = data.logits[rows].argmax(axis=1) == labels
            change[rows] = (after.argmax(axis=1) == labels) - right.astype(float)
        self.accuracy_change_ = float(np.average(change, weights=data.weights))
        remember_losses(self, losses, data, status)


def _absent_message(calibrator: ScoreCalibrator, absent: np.ndarray) -> str:
    listed = ", ".join(str(int(k)) for k in absent[:10])
    more = " and more" if len(absent) > 10 else ""
    return (
        f"labels never hold {len(absent)} of {calibrator.n_classes_} classes: "
        f"{listed}{more}; {type(calibrator).__name__} learns nothing about them, and "
        "what it learns about the others may not hold where they occur"
    )


def score_data(data: CalibrationData) -> ScoreData:
    """Weights of mean one, masked classes, and the classes that never occur."""
    weights = data.weights
    weights = np.ones(len(data)) if weights is None else weights / weights.mean()
    mass = np.bincount(data.labels, weights, data.logits.shape[1])
    logits = hide_masked(data.logits, data.rows.reach, data.labels)
    absent = np.flatnonzero(mass == 0)
    return ScoreData(logits, data.labels, weights, absent, data.rows.reach)


Gradient = tuple[float, np.ndarray]


class AffineCalibrator(ScoreCalibrator):
    """softmax(A z + c), fitted by likelihood from the set-level temperature on.

    A subclass writes `_penalties`.

    Attributes
    ----------
    slope_ : ndarray of shape (n_classes, n_classes) or (n_classes,)
        A, or its diagonal.
    bias_ : ndarray of shape (n_classes,)
        c. Classes without rows keep the set-level scale and no bias.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_
    """

    learns_classes = True
    slope_: np.ndarray
    bias_: np.ndarray

    def _penalties(self, n_classes: int) -> tuple[np.ndarray, float]:
        """L2 penalties on the relative change of the slopes, and on the biases.

        The shape of the first says what is fitted: (k, k) a matrix, (k,) its diagonal,
        (1,) one scale for all classes.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define its penalty")

    def _learn_scores(self, data: ScoreData) -> str:
        n_classes = data.logits.shape[1]
        penalty, bias_penalty = self._penalties(n_classes)
        fitted = fit_temperature(data.logits, data.labels, sample_weight=data.weights)
        inverse, shares = 1 / fitted.temperature, data.weights / data.weights.sum()
        present = np.ones(n_classes, bool)
        present[data.absent] = False
        tied, full = penalty.shape == (1,), penalty.ndim == 2
        plain = inverse * (np.eye(n_classes) if full else np.ones(n_classes))
        free = present[:, None] if full else np.ones(1) if tied else present

        def split(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            change = parameters[: penalty.size].reshape(penalty.shape) * free
            return change, centred_bias(parameters[penalty.size :], present)

        def objective(parameters: np.ndarray) -> Gradient:
            change, bias = split(parameters)
            loss, by_slope, by_bias = affine_slopes(
                data.logits, data.labels, shares, plain + inverse * change, bias
            )
            loss += float(np.sum(penalty * change**2) + bias_penalty * np.sum(bias**2))
            if tied:
                by_slope = by_slope.sum(keepdims=True)
            by_change = (inverse * by_slope + 2 * penalty * change) * free
            by_bias = centred_bias(by_bias + 2 * bias_penalty * bias, present)
            return loss, np.concatenate([by_change.ravel(), by_bias])

        square, spread = curvatures(data, inverse)
        steep = np.outer(spread, square) if full else spread * square
        steep = (steep.sum(keepdims=True) if tied else steep) + 2 * penalty
        curvature = np.concatenate([steep.ravel(), spread + 2 * bias_penalty])
        bounds = None
        if tied:
            # Without a minimum the temperature would run away; biases have a penalty.
            bounds = np.full((len(curvature), 2), [-np.inf, np.inf])
            bounds[0] = BOUND**-2 - 1, BOUND**2 - 1
        change, self.bias_ = split(descend(objective, curvature, bounds))
        self.slope_ = plain + inverse * change
        return fitted.status

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        values = filled(logits)
        slope = self.slope_
        scores = (values * slope if slope.ndim == 1 else values @ slope.T) + self.bias_
        scores[np.isneginf(logits)] = -np.inf
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


def curvatures(data: ScoreData, inverse: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean squares of the scaled logits, and variances of the labels, (k,) each.

    Their products are about the curvature of the loss along each slope, the variances
    along each bias. In units of its inverse root every parameter is equally steep, and
    L-BFGS needs few steps.
    """
    shares = data.weights / data.weights.sum()
    frequency = np.bincount(data.labels, shares, data.logits.shape[1])
    squares = np.zeros(data.logits.shape[1])
    for rows in row_blocks(*data.logits.shape):
        block = filled(data.logits[rows])
        squares += shares[rows] @ np.square(block, dtype=np.float64)
    return inverse**2 * squares, frequency * (1 - frequency)


def centred_bias(values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Biases with mean zero over the classes that have rows, zero for the others.

    A common shift of the present classes would push the absent ones towards
    probability zero; the mean is therefore taken out.
    """
    return np.where(present, values - values[present].mean(), 0.0)


def descend(
    objective: Callable[[np.ndarray], Gradient],
    curvature: np.ndarray,
    bounds: np.ndarray | None,
) -> np.ndarray:
    """Minimise from zero with L-BFGS in units of 1/√curvature.

    A result that is no better than zero is refused. `bounds` of shape (n_parameters, 2)
    cost time: SciPy loops over them in Python.
    """
    unit = 1 / np.sqrt(np.maximum(curvature, 1e-12))
    start = np.zeros(len(unit))

    def scaled(parameters: np.ndarray) -> Gradient:
        loss, gradient = objective(parameters * unit)
        return loss, gradient * unit

    if bounds is not None:
        bounds = bounds / unit[:, None]
    found: Any = minimize(
        scaled,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,  # pyright: ignore[reportArgumentType]
        options={"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-10, "maxcor": 20},
    )
    if found.fun > scaled(start)[0]:
        return start
    return _polished(scaled, found, bounds) * unit


def _polished(
    objective: Callable[[np.ndarray], Gradient], found: Any, bounds: Any
) -> np.ndarray:
    """Go on while the gradient falls: the loss is flat to its last digit by now."""
    best, gradient = found.x, found.jac
    for _ in range(20):
        trial = best - found.hess_inv.dot(gradient)
        trial = trial if bounds is None else np.clip(trial, *bounds.T)
        slope = objective(trial)[1]
        if not np.linalg.norm(slope) < np.linalg.norm(gradient):
            break
        best, gradient = trial, slope
    return best


class EnsembleTemperatureScaling(ScoreCalibrator):
    """w₁ softmax(z/T) + w₂ softmax(z) + w₃/K; the predicted class does not change.

    Attributes
    ----------
    temperature_ : float
        By likelihood.
    mixture_ : ndarray of shape (3,)
        Weights, not negative, of sum one, by likelihood.
    accuracy_change_, status_, nll_, nll_uncalibrated_
        Of the fit set.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.EnsembleTemperatureScaling().fit(data.logits, data.labels)
    >>> round(float(cal.mixture_.sum()), 6), cal.accuracy_change_
    (1.0, 0.0)
    """

    def _learn_scores(self, data: ScoreData) -> str:
        fitted = fit_temperature(data.logits, data.labels, sample_weight=data.weights)
        self.temperature_ = fitted.temperature
        shares = data.weights / data.weights.sum()
        self.mixture_ = _mixture_by_likelihood(data, self.temperature_, shares)
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

    start = np.array([1.0, 0.0, 0.0])  # temperature scaling alone
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


@parameters
class VectorScaling(AffineCalibrator):
    """softmax(v∘z + c), with a scale and a bias for every class.

    Parameters
    ----------
    penalty : float, default=1e-3
        L2 penalty on biases and on the scales' relative distance from the set-level
        inverse temperature.

    Attributes
    ----------
    scale_, bias_ : ndarray of shape (n_classes,)
        v and c. Classes without rows keep the set-level scale and no bias.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.VectorScaling().fit(data.logits, data.labels)
    >>> cal.scale_.round(1), cal.nll_ < cal.nll_uncalibrated_
    (array([0.4, 0.5, 0.5]), True)
    """

    _: KW_ONLY
    penalty: NotNegative = 1e-3

    def _penalties(self, n_classes: int) -> tuple[np.ndarray, float]:
        return np.full(n_classes, float(self.penalty)), self.penalty

    def _learn_scores(self, data: ScoreData) -> str:
        status = super()._learn_scores(data)
        self.scale_ = self.slope_
        return status


@parameters
class BiasCorrectedTemperature(AffineCalibrator):
    """softmax(z/T + c): temperature scaling with a bias for every class (BCTS).

    Parameters
    ----------
    penalty : float, default=1e-3
        L2 penalty on the biases.

    Attributes
    ----------
    temperature_ : float
    bias_ : ndarray of shape (n_classes,)
        Zero for classes without rows.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> tilted = data.logits + [1.0, 0.0, 0.0]    # too fond of the first class
    >>> cal = ch.baselines.BiasCorrectedTemperature().fit(tilted, data.labels)
    >>> int(cal.bias_.argmin()), cal.accuracy_change_ > 0
    (0, True)
    """

    penalty: NotNegative = 1e-3

    def _penalties(self, n_classes: int) -> tuple[np.ndarray, float]:
        return np.zeros(1), self.penalty

    def _learn_scores(self, data: ScoreData) -> str:
        status = super()._learn_scores(data)
        self.temperature_ = float(1 / self.slope_[0])
        return status


# L-BFGS holds about 60 numbers per parameter. Measured on two cores with 300 rows and
# 3000 classes: 20 s and 2.4 GB, at most 4.3 GB if it takes many steps; both grow with
# the square of the number of classes.
MOST_CLASSES = 3000


@parameters
class MatrixScaling(AffineCalibrator):
    """softmax(W z + c) with penalties on what lies off the diagonal and on c.

    W has a number for every pair of classes. More than 3000 classes are refused, as
    time and memory grow with their square; `VectorScaling` fits two numbers per class.

    Parameters
    ----------
    off_diagonal_penalty : float, default=1
        L2 penalty on the off-diagonal entries, relative to the set-level inverse
        temperature; positive.
    bias_penalty : float, default=1e-2
        L2 penalty on the biases; positive.
    diagonal_penalty : float, default=1e-2
        L2 penalty on the diagonal's relative distance from the set-level inverse
        temperature.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
        W. Rows of classes that never occur keep the set-level scale and no bias.
    bias_ : ndarray of shape (n_classes,)
        c.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.MatrixScaling().fit(data.logits, data.labels)
    >>> cal.matrix_.diagonal().round(1), cal.nll_ < cal.nll_uncalibrated_
    (array([0.4, 0.5, 0.5]), True)
    """

    _: KW_ONLY
    off_diagonal_penalty: NotNegative = 1.0
    bias_penalty: NotNegative = 1e-2
    diagonal_penalty: NotNegative = 1e-2

    def _penalties(self, n_classes: int) -> tuple[np.ndarray, float]:
        if n_classes > MOST_CLASSES:
            raise ValueError(
                f"logits has {n_classes} columns, for which MatrixScaling would fit a "
                f"matrix of {n_classes} x {n_classes} numbers; wanted at most "
                f"{MOST_CLASSES} classes, or VectorScaling() (--method vector), which "
                "fits two numbers per class"
            )
        if not min(self.off_diagonal_penalty, self.bias_penalty) > 0:
            raise ValueError(
                "off_diagonal_penalty and bias_penalty must be positive, found "
                f"{self.off_diagonal_penalty} and {self.bias_penalty}"
            )
        penalties = np.full((n_classes, n_classes), float(self.off_diagonal_penalty))
        np.fill_diagonal(penalties, self.diagonal_penalty)
        return penalties, self.bias_penalty

    def _learn_scores(self, data: ScoreData) -> str:
        status = super()._learn_scores(data)
        self.matrix_ = self.slope_
        return status
