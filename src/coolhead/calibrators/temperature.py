"""Set-level temperature scaling: one temperature for every sample."""

from typing import Any, Self

import numpy as np

from coolhead.calibrators.base import FitData, TemperatureCalibrator
from coolhead.numerics.temperature import Solution, solve_temperatures


class TemperatureScaling(TemperatureCalibrator):
    """One temperature, learned from all calibration domains together.

    Parameters
    ----------
    domain_weights : "pooled" gives every sample the same weight; "equal" gives every
        domain the same total weight and needs `sample_domain`.

    Attributes
    ----------
    temperature_ : float
    status_ : str, one of `coolhead.Status`
    nll_, log_temperature_se_ : mean loss at the fit, and the standard error of log T
    """

    def __init__(self, domain_weights: str = "pooled"):
        self.domain_weights = domain_weights

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Minimise the negative log-likelihood of softmax(logits / T)."""
        data = self._begin_fit(logits, labels, None, sample_domain, sample_weight)
        weights = weigh_domains(data, self.domain_weights)
        return self._remember(set_level(data, weights))

    def _remember(self, solution: Solution) -> Self:
        self.temperature_ = float(solution.temperature[0])
        self.status_ = str(solution.status[0])
        self.nll_ = float(solution.nll[0])
        self.log_temperature_se_ = float(solution.log_temperature_se[0])
        return self

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.full(len(logits), self.temperature_)


def set_level(data: FitData, weights: np.ndarray | None) -> Solution:
    """The temperature of all rows as one group."""
    codes = np.zeros(len(data.labels), np.intp)
    return solve_temperatures(data.rows, codes, weights)


def weigh_domains(data: FitData, domain_weights: str) -> np.ndarray | None:
    """Weights under which each domain counts by its size, or equally."""
    if domain_weights == "pooled":
        return data.weights
    if domain_weights != "equal":
        raise ValueError(
            f"domain_weights is {domain_weights!r}; wanted 'pooled' or 'equal'"
        )
    if data.domains is None:
        raise ValueError(
            "sample_domain is missing: domain_weights='equal' needs the domain of "
            "each row"
        )
    weights = np.ones(len(data.labels)) if data.weights is None else data.weights
    codes = np.unique(data.domains, return_inverse=True)[1]
    mass = np.bincount(codes, weights)
    return weights / np.where(mass > 0, mass, 1.0)[codes]
