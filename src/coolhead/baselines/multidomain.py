"""MD-TS: each domain's temperature, regressed on the features of its samples."""

from typing import Any, Self

import numpy as np
from sklearn.linear_model import Ridge

from coolhead.baselines.transfer.weighted import remember_quality
from coolhead.calibrators.base import FitData, TemperatureCalibrator
from coolhead.calibrators.temperature import set_level
from coolhead.numerics.temperature import Status, solve_temperatures

FLOOR_SHARE = 0.1


class MultiDomainTemperature(TemperatureCalibrator):
    """T(x) = c + w·h, by ridge regression of domain temperatures on features.

    Every calibration row contributes its features with the temperature of its
    domain. Two domains make this a linear classifier between two temperatures; more
    domains are better.

    Parameters
    ----------
    ridge : penalty as a multiple of the mean variance sum of a feature column.
    clip : "floor" keeps T above a tenth of the smallest domain temperature; "range"
        keeps it between the smallest and the largest.

    Attributes
    ----------
    domains_ : (m,) names, domain_temperatures_ : (m,), domain_status_ : (m,).
    coef_, intercept_ : of the line; bounds_ : of T.
    temperature_ : float, of all rows together.
    status_, nll_, nll_uncalibrated_ : of the fit set.
    """

    uses_features = True

    def __init__(self, *, ridge: float = 1e-3, clip: str = "floor"):
        self.ridge = ridge
        self.clip = clip

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit a temperature per domain, then the line through all rows.

        `features` (n, d) and `sample_domain` (n,) are needed.
        """
        if self.clip not in ("floor", "range"):
            raise ValueError(f"clip is {self.clip!r}; wanted 'floor' or 'range'")
        if sample_domain is None:
            msg = (
                "sample_domain is missing: MultiDomainTemperature learns from the "
                "difference between domains; wanted one domain per row"
            )
            raise ValueError(msg)
        data = self._begin_fit(logits, labels, features, sample_domain, sample_weight)
        codes = self._fit_domains(data, np.asarray(data.domains))
        self._fit_line(data.features, self.domain_temperatures_[codes], data.weights)
        temperature = self._temperature(data.rows.logits, data.features)
        remember_quality(self, data, temperature, self._worst_status())
        return self

    def _fit_domains(self, data: FitData, domains: np.ndarray) -> np.ndarray:
        self.domains_, codes = np.unique(domains, return_inverse=True)
        common = set_level(data, data.weights)
        solved = solve_temperatures(data.rows, codes, data.weights)
        self.temperature_ = float(common.temperature[0])
        self.domain_status_ = solved.status
        # A domain without a minimum would bend the line to the edge of the range.
        fitted = solved.status == Status.CONVERGED
        self.domain_temperatures_ = np.where(
            fitted, solved.temperature, self.temperature_
        )
        return codes

    def _fit_line(
        self, features: Any, heights: np.ndarray, weights: np.ndarray | None
    ) -> None:
        spread = float(features.var(axis=0, dtype=np.float64).mean()) * len(features)
        # Features that never vary say nothing; any penalty keeps the line level.
        model = Ridge(alpha=self.ridge * spread if spread > 0 else 1.0)
        model.fit(features, heights.astype(features.dtype), sample_weight=weights)
        self.coef_ = model.coef_.astype(np.float64)
        self.intercept_ = float(model.intercept_)
        lowest, highest = (
            float(self.domain_temperatures_.min()),
            float(self.domain_temperatures_.max()),
        )
        within = self.clip == "range"
        self.bounds_ = (
            (lowest, highest) if within else (FLOOR_SHARE * lowest, float("inf"))
        )

    def _worst_status(self) -> str:
        fitted = np.all(self.domain_status_ == Status.CONVERGED)
        return Status.CONVERGED if fitted else Status.FALLBACK

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        values = features @ self.coef_.astype(features.dtype)
        return np.clip(values.astype(np.float64) + self.intercept_, *self.bounds_)
