"""The posterior of the accuracy of a domain, on the logit scale.

Densities on a grid that narrows by itself. Estimates enter as Student-t factors, whose
heavy tails down-weight an estimate that is far off.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from coolhead.calibrators.evidence import logit
from coolhead.numerics.blocks import row_blocks

TAILS = 4.0
POINTS = 121
SMALLEST_VARIANCE = 0.005
# Labels that also choose class offsets vary more than they seem to: the factor of
# their variance is 1 + this / sqrt(n). See docs/class-offsets.md.
SHARED_LABELS = 4.0


class Belief(NamedTuple):
    """A distribution on a grid: points and their probabilities, (n_points,) each."""

    grid: np.ndarray
    probability: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.probability @ self.grid)

    @property
    def deviation(self) -> float:
        return float(np.sqrt(self.probability @ np.square(self.grid - self.mean)))

    def quantile(self, share: float) -> float:
        """Return the value below which `share` of the probability lies."""
        below = np.cumsum(self.probability) - self.probability / 2
        return float(np.interp(share, below, self.grid))


class Estimate(NamedTuple):
    """An estimate of the logit of an accuracy, its scale and degrees of freedom."""

    name: str
    centre: float
    scale: float
    freedom: float = TAILS

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """Return the log density of Student's t, up to a constant."""
        away = np.square((values - self.centre) / self.scale)
        return -(self.freedom + 1) / 2 * np.log1p(away / self.freedom)


def believe(
    log_density: Callable[[np.ndarray], np.ndarray],
    low: float,
    high: float,
    points: int = POINTS,
) -> Belief:
    """Normalise a density between two limits, on a finer grid where it is narrow."""
    while True:
        grid = np.linspace(low, high, points)
        logs = log_density(grid)
        weights = np.exp(logs - logs.max())
        belief = Belief(grid, weights / weights.sum())
        step = grid[1] - grid[0]
        if belief.deviation > 2 * step or step < 1e-4:
            return belief
        reach = max(8 * belief.deviation, 4 * step)
        low, high = max(belief.mean - reach, low), min(belief.mean + reach, high)


def mean_shifted(confidence: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return the mean of expit(logit(confidence) + shift) for each shift."""
    logits, total = logit(confidence), np.zeros(len(shift))
    for rows in row_blocks(len(logits), len(shift)):
        total += expit(logits[rows, None] + shift).sum(axis=0)
    return total / len(logits)


def shift_to(confidence: np.ndarray, accuracy: float) -> float:
    """Find the shift of the logits of confidence that makes their mean an accuracy."""
    wanted, low, high = float(logit(accuracy)), -30.0, 30.0
    for _ in range(6):
        shifts = np.linspace(low, high, 33)
        found = logit(mean_shifted(confidence, shifts))
        at = int(np.clip(np.searchsorted(found, wanted), 1, 32))
        low, high = shifts[at - 1], shifts[at]
    return float((low + high) / 2)


def label_log_density(
    confidence: np.ndarray,
    right: np.ndarray,
    weights: np.ndarray,
    shared: bool,
    shift: np.ndarray,
) -> np.ndarray:
    """Return the log density of labels for confidences shifted on the logit scale.

    Student's t of sum w (right - c) over its standard error: Wilson's interval with
    confidences in place of one common share, so that rows of extreme confidence carry
    little weight. Its maximum is where the weighted means of confidence and of
    correctness agree.

    Parameters
    ----------
    confidence : ndarray of shape (n_labels,)
    right : ndarray of bool of shape (n_labels,)
    weights : ndarray of shape (n_labels,)
        They sum to one.
    shared : bool
        Whether class offsets are learned from the same labels.
    shift : ndarray of shape (n_points,)

    Returns
    -------
    log_density : ndarray of shape (n_points,)
    """
    c = expit(logit(confidence)[:, None] + shift)
    miss = right[:, None] - c
    excess = weights @ miss
    # Where confidence is wrong about single rows its own variance is too small, and
    # the observed variance of few rows is noisy: use half of each.
    expected = np.square(weights) @ np.maximum(c * (1 - c), SMALLEST_VARIANCE)
    seen = np.square(weights) @ np.square(miss - excess)
    variance = label_variance(len(right), shared) * (expected + seen) / 2
    freedom = max(1 / float(np.square(weights).sum()) - 1, 1.0)
    away = np.square(excess) / variance
    return -(freedom + 1) / 2 * np.log1p(away / freedom)


def label_variance(n_labels: int, shared: bool) -> float:
    """Return the factor by which labels vary more than they seem to."""
    return 1 + SHARED_LABELS / np.sqrt(n_labels) if shared else 1.0
