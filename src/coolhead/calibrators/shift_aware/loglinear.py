"""log T(x) as a linear function of descriptors, fitted directly on the loss."""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.moments import Rows, row_moments

LARGEST_STEP = 2.0
MAX_STEPS = 40
CLAMPED_SHARE = 0.005
# Newton's last step, too small to need a look at where it leads; and too small to
# change a choice between two fits.
SURE_GAIN, FAIR_GAIN = 1e-6, 1e-5


class Standard(NamedTuple):
    """Centre, scale and clamping range of each descriptor, (p,) each."""

    center: np.ndarray
    scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def design(self, columns: np.ndarray) -> np.ndarray:
        """Standardised and clamped columns after a column of ones, (n, 1 + p)."""
        design = np.ones((len(columns), 1 + columns.shape[1]))
        clamped = np.maximum((columns - self.center) / self.scale, self.lower)
        np.minimum(clamped, self.upper, out=design[:, 1:])
        return design


def standardise(columns: np.ndarray, row_weights: np.ndarray) -> Standard:
    """Weighted mean and deviation; the range holds all but 1 % of the rows.

    Clamping to that range keeps a sample beyond all calibration data at the
    temperature of the furthest samples that were seen.
    """
    center = row_weights @ columns
    scale = np.sqrt(row_weights @ np.square(columns - center))
    # Rounding leaves a tiny deviation where a column is constant.
    flat = scale <= 1e-9 * np.maximum(np.abs(center), 1e-30)
    scale = np.where(flat, 1.0, scale)
    scaled = (columns - center) / scale
    lower, upper = np.quantile(scaled, [CLAMPED_SHARE, 1 - CLAMPED_SHARE], axis=0)
    return Standard(
        center, scale, np.where(flat, 0.0, lower), np.where(flat, 0.0, upper)
    )


class LogLinearProblem(NamedTuple):
    """Penalised mean loss of log T = design @ weights.

    design : (n, 1 + p); row_weights : (n,) that sum to one; penalty : (1 + p,) of the
    squared distance to `prior`; limits : lowest and highest log T.
    """

    rows: Rows
    design: np.ndarray
    row_weights: np.ndarray
    penalty: np.ndarray
    prior: np.ndarray
    limits: tuple[float, float]

    def take(self, index: np.ndarray) -> "LogLinearProblem":
        """The problem on some of the rows."""
        weights = self.row_weights[index]
        return self._replace(
            rows=self.rows.take(index),
            design=self.design[index],
            row_weights=weights / weights.sum(),
        )


class Point(NamedTuple):
    """Mean loss at some weights, and the two curvatures of every row; no penalty."""

    weights: np.ndarray
    loss: float
    slope: np.ndarray
    bend: np.ndarray


def fit_log_linear(problem: LogLinearProblem, start: np.ndarray) -> np.ndarray:
    """Weights (1 + p,) of smallest penalised loss, by damped Newton steps."""
    return _search(problem, evaluate(problem, start), SURE_GAIN)[0]


def fit_path(
    problem: LogLinearProblem, penalties: list[np.ndarray]
) -> list[np.ndarray]:
    """Weights under one penalty after the other, precise enough to choose among them.

    What is known of the loss where one search ended serves to begin the next.
    """
    found, here = [], evaluate(problem, problem.prior)
    for penalty in penalties:
        weights, here = _search(problem._replace(penalty=penalty), here, FAIR_GAIN)
        found.append(weights)
    return found


def evaluate(problem: LogLinearProblem, weights: np.ndarray) -> Point:
    """Loss and derivatives with respect to the log temperature, in one pass."""
    log_temperature = np.clip(problem.design @ weights, *problem.limits)
    moments = row_moments(problem.rows, np.exp(-log_temperature))
    return Point(
        weights,
        float(problem.row_weights @ moments.loss),
        -problem.row_weights * moments.score,
        problem.row_weights * moments.curvature,
    )


def _search(
    problem: LogLinearProblem, here: Point, sure_gain: float
) -> tuple[np.ndarray, Point]:
    """The minimum, and the last point on the way that was looked at."""
    for _ in range(MAX_STEPS):
        gradient = _gradient(problem, here)
        step = _newton_step(problem, here, gradient)
        if -gradient @ step < sure_gain:
            return here.weights + step, here
        there = _descend(problem, here, step)
        gain = _loss(problem, here) - _loss(problem, there)
        here = there
        if gain < 1e-8:
            break
    return here.weights, here


def _loss(problem: LogLinearProblem, here: Point) -> float:
    apart = here.weights - problem.prior
    return here.loss + 0.5 * float(problem.penalty @ np.square(apart))


def _gradient(problem: LogLinearProblem, here: Point) -> np.ndarray:
    apart = here.weights - problem.prior
    return here.slope @ problem.design + problem.penalty * apart


def _newton_step(
    problem: LogLinearProblem, here: Point, gradient: np.ndarray
) -> np.ndarray:
    """Newton's step; where the loss is not convex, with its convex part only."""
    penalty = np.diag(problem.penalty + 1e-9)
    design = problem.design
    for bend in (here.bend - here.slope, here.bend):
        hessian = (design * bend[:, None]).T @ design + penalty
        try:
            np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            continue
        step = -np.linalg.solve(hessian, gradient)
        longest = np.abs(design @ step).max()
        return step * min(1.0, LARGEST_STEP / max(longest, 1e-12))
    return -gradient


def _descend(problem: LogLinearProblem, here: Point, step: np.ndarray) -> Point:
    """Halve the step until the loss does not grow; stay if it never stops growing."""
    for halvings in range(10):
        there = evaluate(problem, here.weights + step / 2**halvings)
        if _loss(problem, there) <= _loss(problem, here):
            return there
    return here
