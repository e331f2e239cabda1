"""log T(x) as a linear function of descriptors, fitted directly on the loss."""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.moments import Rows, row_moments

LARGEST_STEP = 2.0
MAX_STEPS = 40
CLAMPED_SHARE = 0.005
# Newton's last step, too small to need a look at where it leads.
SURE_GAIN = 1e-7


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


class Point(NamedTuple):
    """Loss at some weights, with its gradient and the two curvatures per row."""

    loss: float
    gradient: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


def fit_log_linear(problem: LogLinearProblem, start: np.ndarray) -> np.ndarray:
    """Weights (1 + p,) of smallest penalised loss, by damped Newton steps."""
    weights, here = start, evaluate(problem, start)
    for _ in range(MAX_STEPS):
        step = _newton_step(problem, here)
        if -here.gradient @ step < SURE_GAIN:
            return weights + step
        weights, there = _descend(problem, weights, here, step)
        if here.loss - there.loss < 1e-8:
            break
        here = there
    return weights


def evaluate(problem: LogLinearProblem, weights: np.ndarray) -> Point:
    """Loss and derivatives with respect to the log temperature."""
    log_temperature = np.clip(problem.design @ weights, *problem.limits)
    moments = row_moments(problem.rows, np.exp(-log_temperature))
    apart = weights - problem.prior
    slope = -problem.row_weights * moments.score
    loss = problem.row_weights @ moments.loss + 0.5 * problem.penalty @ np.square(apart)
    return Point(
        float(loss),
        slope @ problem.design + problem.penalty * apart,
        slope,
        problem.row_weights * moments.curvature,
    )


def _newton_step(problem: LogLinearProblem, here: Point) -> np.ndarray:
    """Newton's step; where the loss is not convex, with its convex part only."""
    penalty = np.diag(problem.penalty + 1e-9)
    design = problem.design
    for bend in (here.bend - here.slope, here.bend):
        hessian = (design * bend[:, None]).T @ design + penalty
        try:
            np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            continue
        step = -np.linalg.solve(hessian, here.gradient)
        longest = np.abs(design @ step).max()
        return step * min(1.0, LARGEST_STEP / max(longest, 1e-12))
    return -here.gradient


def _descend(
    problem: LogLinearProblem, weights: np.ndarray, here: Point, step: np.ndarray
) -> tuple[np.ndarray, Point]:
    """Halve the step until the loss does not grow; stay if it never stops growing."""
    for halvings in range(10):
        proposal = weights + step / 2**halvings
        there = evaluate(problem, proposal)
        if there.loss <= here.loss:
            return proposal, there
    return weights, here
