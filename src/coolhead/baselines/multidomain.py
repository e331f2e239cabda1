"""MD-TS: each domain's temperature, regressed on the features of its samples."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from coolhead.calibrators.base import TemperatureCalibrator, remember_quality
from coolhead.calibrators.clustered import temperature_bounds
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import NotNegative, parameters
from coolhead.numerics.solver import Status


@parameters
class MultiDomainTemperature(TemperatureCalibrator):
    """T(x) = c + w·h, by penalised regression of domain temperatures on features.

    Every calibration row contributes its features with the temperature of its
    domain. Two domains make this a linear classifier between two temperatures; more
    domains are better.

    Parameters
    ----------
    penalty : float, default=1e-3
        A multiple of the mean variance sum of a feature column.
    clip : {"floor", "range"}, default="floor"
        "floor" keeps T above a tenth of the smallest domain temperature; "range"
        keeps it between the smallest and the largest.

    Attributes
    ----------
    domains_, domain_temperatures_, domain_status_ : ndarray of shape (n_domains,)
        Names, temperatures and their status.
    coef_, intercept_, bounds_
        Of the line; the bounds of T.
    temperature_ : float
        Of all rows together.
    status_, nll_, nll_uncalibrated_
        Of the fit set.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0, 3.0])
    >>> cal = ch.baselines.MultiDomainTemperature().fit(
    ...     data.logits, data.labels, features=data.features, sample_domain=data.domains
    ... )
    >>> cal.domain_temperatures_.round(1)
    array([1. , 2. , 2.8])
    """

    takes = ("features",)
    needs = ("features", "domains")
    uses_features = True

    _: KW_ONLY
    penalty: NotNegative = 1e-3
    clip: str = "floor"

    def _learn(self, data: CalibrationData) -> None:
        solved, common = data.domain_temperatures(), data.set_temperature()
        self.temperature_ = float(common.temperature[0])
        self.domains_, self.domain_status_ = data.domains.names, solved.status
        # A domain without a minimum would bend the line to the edge of the range.
        fitted = solved.status == Status.CONVERGED
        self.domain_temperatures_ = np.where(
            fitted, solved.temperature, self.temperature_
        )
        self.bounds_ = temperature_bounds(self.domain_temperatures_, self.clip)
        features: Any = data.features
        heights = self.domain_temperatures_[data.domains.codes].astype(features.dtype)
        spread = float(features.var(axis=0, dtype=np.float64).mean()) * len(features)
        # With features that never vary any penalty keeps the line level.
        model = Ridge(alpha=self.penalty * spread if spread > 0 else 1.0)
        model.fit(features, heights, sample_weight=data.weights)
        self.coef_ = model.coef_.astype(np.float64)
        self.intercept_ = float(model.intercept_)
        status = Status.CONVERGED if fitted.all() else Status.FALLBACK
        temperature = self._temperature(data.logits, features)
        remember_quality(self, data, temperature, status)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        values = features @ self.coef_.astype(features.dtype)
        return np.clip(values.astype(np.float64) + self.intercept_, *self.bounds_)
