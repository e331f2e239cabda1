"""The smallest calibration error that one temperature could have had.

It needs labels of the target, so it is only a bound for comparisons. The oracle of the
paper is `TemperatureScaling` on those labels.
"""

import numpy as np

from coolhead.calibrators.base import TemperatureCalibrator, remember_quality
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Count, parameters
from coolhead.metrics.bins import N_BINS, equal_width_index
from coolhead.numerics.softmax import confidence
from coolhead.numerics.solver import BOUND, Status

GRID_POINTS = 200
FINE_POINTS = 41


@parameters
class OracleErrorTemperature(TemperatureCalibrator):
    """The temperature with the smallest calibration error on labelled target rows.

    Some papers call this the oracle. It minimises the binned error itself, a lower
    limit that a temperature by likelihood does not reach; never mix the two in a ratio.

    Parameters
    ----------
    n_bins : int, default=15
        Bins of equal width of the calibration error.

    Attributes
    ----------
    temperature_, error_ : float
        The temperature, and the calibration error that it reaches.
    status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> target = ch.datasets.simulate_domains([2.0])    # its labels are known
    >>> oracle = ch.baselines.OracleErrorTemperature().fit(target.logits, target.labels)
    >>> 1.5 < oracle.temperature_ < 2.5
    True
    """

    n_bins: Count = N_BINS

    def _learn(self, data: CalibrationData) -> None:
        spread = data.rows.typical_spread(data.weights)
        self.temperature_, self.error_ = 1.0, float("nan")
        status = Status.CONSTANT_LOGITS
        if spread > 0:
            self.temperature_, self.error_, status = _smallest_error(
                data, spread, self.n_bins
            )
        remember_quality(self, data, self.temperature_, status)


def _smallest_error(
    data: CalibrationData, spread: float, n_bins: int
) -> tuple[float, float, str]:
    """Return (T, error, status).

    The error is a jagged function of T: only a scan is safe.
    """

    def error_at(position: float) -> float:
        largest, predicted = confidence(data.logits, float(np.exp(position)))
        gap = (predicted == data.labels) - largest
        index = equal_width_index(largest.astype(np.float64), n_bins)
        return float(np.abs(np.bincount(index, data.row_shares * gap)).sum())

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
