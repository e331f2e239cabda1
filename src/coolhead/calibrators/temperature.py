"""Set-level temperature scaling: one temperature for every sample."""

import numpy as np

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import parameters
from coolhead.numerics.checks import check_choice
from coolhead.numerics.solver import Solution, Status, solve_temperatures


@parameters
class TemperatureScaling(TemperatureCalibrator):
    """One temperature, learned from all calibration domains together.

    Fitted on held-out rows of the source it is source-only scaling; on labelled rows
    of the target, the oracle, which is not available in practice.

    Parameters
    ----------
    domain_weights : "pooled" gives every sample the same weight; "equal" gives every
        domain the same total weight and needs `sample_domain`.

    Attributes
    ----------
    temperature_ : float
    status_ : str, one of `coolhead.Status`
    nll_, log_temperature_se_ : mean loss at the fit, and the standard error of log T

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])    # the best temperature is 2
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> round(cal.temperature_, 1), cal.status_
    (2.1, 'converged')
    >>> confidence, predicted = cal.confidence(data.logits)
    """

    domain_weights: str = "pooled"

    def _learn(self, data: CalibrationData) -> None:
        check_choice(self.domain_weights, "domain_weights", "pooled", "equal")
        if self.domain_weights == "pooled":
            self._remember(data.set_temperature())
        else:
            self._remember(set_level(data, equal_weights(data)))

    def _remember(self, solution: Solution) -> None:
        self.temperature_ = float(solution.temperature[0])
        self.status_ = str(solution.status[0])
        self.nll_ = float(solution.nll[0])
        self.log_temperature_se_ = float(solution.log_temperature_se[0])


class Identity(TemperatureCalibrator):
    """The uncalibrated classifier: temperature one.

    Examples
    --------
    >>> import coolhead as ch
    >>> uncalibrated = ch.calibrators.Identity().fit([[2.0, 0.0]], [0])
    >>> uncalibrated.temperature_
    1.0
    """

    def _learn(self, data: CalibrationData) -> None:
        self.temperature_, self.status_ = 1.0, str(Status.CONVERGED)


def set_level(data: CalibrationData, weights: np.ndarray) -> Solution:
    """Return the temperature of all rows as one group, under other weights."""
    return solve_temperatures(data.rows, np.zeros(len(data), np.intp), weights)


def equal_weights(data: CalibrationData) -> np.ndarray:
    """Return weights under which each domain counts the same, (n_samples,)."""
    if not data.domains_known:
        raise ValueError(
            "sample_domain is missing: domain_weights='equal' needs the domain of "
            "each row"
        )
    weights = np.ones(len(data)) if data.weights is None else data.weights
    codes = data.domains.codes
    return weights / np.bincount(codes, weights)[codes]
