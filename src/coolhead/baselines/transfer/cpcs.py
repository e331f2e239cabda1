"""CPCS: the temperature with the smallest importance-weighted Brier score.

The Brier score is not convex in the temperature and can have several minima, so the
whole range is scanned on a logarithmic grid before the best stretches are refined.
"""

from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar

from coolhead.baselines.transfer.weighted import remember_quality, weigh_rows
from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.numerics.scan import brier_scan
from coolhead.numerics.softmax import brier_rows
from coolhead.numerics.temperature import BOUND, Status
from coolhead.shift.ratio import DensityRatio

REFINED_MINIMA = 3


class CPCS(TemperatureCalibrator):
    """One temperature by importance-weighted Brier score.

    Parameters
    ----------
    min_domain_share, estimator, max_weight, random_state : as in
        `WeightedTemperature`.

    Attributes
    ----------
    temperature_ : float
    brier_ : weighted Brier score at that temperature, summed over classes.
    Others as `WeightedTemperature`.
    """

    def __init__(
        self,
        *,
        min_domain_share: float = 0.0,
        estimator: str = "discriminator",
        max_weight: float = 50.0,
        random_state: int = 0,
    ):
        self.min_domain_share = min_domain_share
        self.estimator = estimator
        self.max_weight = max_weight
        self.random_state = random_state

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any,
        target_features: Any,
        target_logits: Any = None,
        reference_features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
        density_ratio: DensityRatio | None = None,
    ) -> Self:
        """Minimise the weighted Brier score; arguments as `WeightedTemperature.fit`."""
        data = self._begin_fit(logits, labels, None, sample_domain, sample_weight)
        weights = weigh_rows(
            self, data, features, target_features, reference_features, density_ratio
        )
        spread = data.rows.typical_spread(weights)
        self.temperature_, self.brier_, status = minimise_brier(
            data.rows.logits, data.labels, weights, spread
        )
        remember_quality(self, data, self.temperature_, status)
        return self

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.full(len(logits), self.temperature_)


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
