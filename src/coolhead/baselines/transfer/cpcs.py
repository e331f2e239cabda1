"""CPCS: the temperature with the smallest importance-weighted Brier score.

The Brier score is not convex in the temperature and can have several minima, so the
whole range is scanned on a logarithmic grid before the best stretches are refined.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from coolhead.baselines.transfer.base import TransferCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.quality import remember_quality
from coolhead.numerics.scan import brier_scan
from coolhead.numerics.softmax import brier_rows
from coolhead.numerics.solution import Status
from coolhead.numerics.solving import BOUND

REFINED_MINIMA = 3


class CPCS(TransferCalibrator):
    """One temperature by importance-weighted Brier score.

    Parameters are those of `TransferCalibrator`.

    Attributes
    ----------
    As `TransferCalibrator`, and
    brier_ : weighted Brier score at that temperature, summed over classes.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.CPCS().fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ... )
    >>> cal.temperature_ > 1.5    # as in the target's site
    True
    """

    def _learn(self, data: CalibrationData) -> None:
        weights = self._weigh(data)
        spread = data.rows.typical_spread(weights)
        self.temperature_, self.brier_, status = minimise_brier(
            data.logits, data.labels, weights, spread
        )
        remember_quality(self, data, self.temperature_, status)


def minimise_brier(
    logits: np.ndarray, labels: np.ndarray, weights: np.ndarray, spread: float
) -> tuple[float, float, str]:
    """Return T in [spread/300, 300 spread], the weighted Brier score, the status."""
    if spread <= 0:
        score = float(np.average(brier_rows(logits, labels, 1.0), weights=weights))
        return 1.0, score, Status.CONSTANT_LOGITS

    def score_at(position: float) -> float:
        rows = brier_rows(logits, labels, np.exp(position))
        return float(np.average(rows, weights=weights))

    middle, reach = np.log(spread), np.log(BOUND)
    grid, scores = brier_scan(logits, labels, weights, middle - reach, middle + reach)
    best = (scores.min(), grid[scores.argmin()])
    for index in _deepest_minima(scores):
        around = grid[index - 1], grid[index + 1]
        found: Any = minimize_scalar(
            score_at, bounds=around, method="bounded", options={"xatol": 1e-7}
        )
        best = min(best, (found.fun, found.x))
    inside = grid[0] < best[1] < grid[-1]
    status = Status.CONVERGED if inside else Status.AT_BOUND
    return float(np.exp(best[1])), float(best[0]), status


def _deepest_minima(scores: np.ndarray) -> np.ndarray:
    """Indices of the lowest interior local minima of the grid."""
    inner = scores[1:-1]
    local = np.flatnonzero((inner <= scores[:-2]) & (inner <= scores[2:])) + 1
    return local[np.argsort(scores[local])][:REFINED_MINIMA]
