"""What every method is compared with: nothing, the source, and the target's labels.

The oracles need labels of the target and so can never be used; they show how much
could be gained at all.
"""

from typing import Any, Self

import numpy as np

from coolhead.baselines.transfer.weighted import remember_quality
from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.temperature import set_level
from coolhead.metrics import expected_calibration_error
from coolhead.numerics.softmax import confidence
from coolhead.numerics.temperature import BOUND, Status

GRID_POINTS = 200
FINE_POINTS = 41


class Identity(TemperatureCalibrator):
    """The classifier as it is: temperature one."""

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Check the arguments and learn nothing."""
        data = self._begin_fit(logits, labels, None, sample_domain, sample_weight)
        self.temperature_ = 1.0
        remember_quality(self, data, 1.0, Status.CONVERGED)
        return self

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.ones(len(logits))


class SourceTemperature(TemperatureCalibrator):
    """One temperature from held-out labelled rows of the source domain.

    Attributes
    ----------
    temperature_, status_, nll_, nll_uncalibrated_
    """

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Minimise the negative log-likelihood on rows of the source."""
        return _fit_one(self, logits, labels, sample_weight)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.full(len(logits), self.temperature_)


class OracleTemperature(TemperatureCalibrator):
    """One temperature from labelled rows of the target itself.

    It minimises the negative log-likelihood, so its calibration error is usually, but
    not always, the smallest.

    Attributes
    ----------
    temperature_, status_, nll_, nll_uncalibrated_
    """

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Minimise the negative log-likelihood on labelled rows of the target."""
        return _fit_one(self, logits, labels, sample_weight)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.full(len(logits), self.temperature_)


class OracleErrorTemperature(TemperatureCalibrator):
    """The temperature with the smallest calibration error on labelled target rows.

    Some papers call this the oracle. It minimises the binned error itself, a lower
    limit that `OracleTemperature` does not reach; never mix the two in one ratio.

    Parameters
    ----------
    n_bins : bins of equal width of the calibration error.

    Attributes
    ----------
    temperature_, error_ : the calibration error reached.
    status_, nll_, nll_uncalibrated_
    """

    def __init__(self, n_bins: int = 15):
        self.n_bins = n_bins

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Scan temperatures for the smallest calibration error (without weights)."""
        data = self._begin_fit(logits, labels, None, sample_domain, sample_weight)
        spread = data.rows.typical_spread()
        self.temperature_, self.error_ = 1.0, float("nan")
        status = Status.CONSTANT_LOGITS
        if spread > 0:
            self.temperature_, self.error_, status = _smallest_error(
                data.rows.logits, data.labels, spread, self.n_bins
            )
        remember_quality(self, data, self.temperature_, status)
        return self

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.full(len(logits), self.temperature_)


def _fit_one(calibrator: Any, logits: Any, labels: Any, sample_weight: Any) -> Any:
    data = calibrator._begin_fit(logits, labels, None, None, sample_weight)
    solution = set_level(data, data.weights)
    calibrator.temperature_ = float(solution.temperature[0])
    status = str(solution.status[0])
    remember_quality(calibrator, data, calibrator.temperature_, status)
    return calibrator


def _smallest_error(
    logits: np.ndarray, labels: np.ndarray, spread: float, n_bins: int
) -> tuple[float, float, str]:
    """Return (T, error, status).

    The error is a jagged function of T: only a scan is safe.
    """

    def error_at(position: float) -> float:
        largest, predicted = confidence(logits, float(np.exp(position)))
        return expected_calibration_error(predicted == labels, largest, n_bins=n_bins)

    middle, reach = np.log(spread), np.log(BOUND)
    coarse = np.linspace(middle - reach, middle + reach, GRID_POINTS)
    step = coarse[1] - coarse[0]
    best = coarse[np.argmin([error_at(position) for position in coarse])]
    left, right = max(best - step, coarse[0]), min(best + step, coarse[-1])
    fine = np.linspace(left, right, FINE_POINTS)
    errors = [error_at(position) for position in fine]
    found = fine[np.argmin(errors)]
    inside = coarse[0] < found < coarse[-1]
    status = Status.CONVERGED if inside else Status.AT_BOUND
    return float(np.exp(found)), float(min(errors)), status
