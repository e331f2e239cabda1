"""The line of least norm through a few points in many dimensions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from coolhead.numerics.blocks import row_blocks

PENALTY_GRID = (0.0, *np.logspace(-3, 3, 13))


class Line(NamedTuple):
    """value(h) = intercept + slope · h."""

    slope: np.ndarray
    intercept: float
    penalty: float

    def at(
        self, features: np.ndarray, transform: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Values at the transformed features, (n,), block by block."""
        values = np.empty(len(features))
        for rows in row_blocks(*features.shape):
            values[rows] = transform(features[rows]) @ self.slope + self.intercept
        return values


def fit_line(centers: np.ndarray, heights: np.ndarray, penalty: float | str) -> Line:
    """Least squares with intercept; with penalty = 0 the solution of smallest norm.

    penalty : a multiple of the mean eigenvalue of the centred Gram matrix, or
        "auto" for the multiple with the smallest leave-one-out error.
    """
    if penalty == "auto":
        penalty = _leave_one_out(centers, heights)
    if not isinstance(penalty, (int, float)) or penalty < 0:
        raise ValueError(f"line_penalty is {penalty!r}; wanted a number >= 0 or 'auto'")
    middle = centers.mean(axis=0)
    centred = centers - middle
    gram = centred @ centred.T
    added = penalty * np.trace(gram) / len(gram)
    # With an intercept the Gram matrix is singular by construction; pinv also copes
    # with centres that lie on a line.
    inverse = np.linalg.pinv(gram + added * np.eye(len(gram)), hermitian=True)
    slope = centred.T @ (inverse @ (heights - heights.mean()))
    return Line(slope, float(heights.mean() - slope @ middle), float(penalty))


def _leave_one_out(centers: np.ndarray, heights: np.ndarray) -> float:
    """The penalty of PENALTY_GRID that best predicts each point from the others."""
    if len(centers) < 3:
        return 0.0
    errors = [
        sum(
            (_left_out(centers, heights, j, penalty) - heights[j]) ** 2
            for j in range(len(centers))
        )
        for penalty in PENALTY_GRID
    ]
    return float(PENALTY_GRID[int(np.argmin(errors))])


def _left_out(
    centers: np.ndarray, heights: np.ndarray, j: int, penalty: float
) -> float:
    line = fit_line(np.delete(centers, j, 0), np.delete(heights, j), penalty)
    return float(centers[j] @ line.slope + line.intercept)
