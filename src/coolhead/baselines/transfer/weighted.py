"""Temperatures by importance-weighted likelihood, one or one per cluster."""

from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np

from coolhead.baselines.transfer.base import TransferCalibrator
from coolhead.calibrators.clustered.calibrators import fit_cluster_temperatures
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Count, Size, parameters
from coolhead.calibrators.quality import remember_quality
from coolhead.calibrators.temperature import set_level


class WeightedTemperature(TransferCalibrator):
    """One temperature by importance-weighted likelihood (WTS).

    Parameters and attributes are those of `TransferCalibrator`.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.WeightedTemperature().fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ... )
    >>> cal.temperature_ > 1.5    # as in the target's site
    True
    """

    def _learn(self, data: CalibrationData) -> None:
        solution = set_level(data, self._weigh(data))
        self.temperature_ = float(solution.temperature[0])
        remember_quality(self, data, self.temperature_, str(solution.status[0]))


@parameters
class WeightedClusterTemperature(TransferCalibrator):
    """The temperature of the nearest cluster, with importance weights inside each.

    The mass of a cluster cancels: only the shift inside clusters is weighted away.

    Parameters
    ----------
    n_clusters, n_init, min_cluster_size : as in `NearestClusterTemperature`.
    Others as in `TransferCalibrator`.

    Attributes
    ----------
    As `TransferCalibrator`, and cluster_temperatures_ (k,), clusters_,
    n_fallbacks_, cluster_status_ (k,).

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.WeightedClusterTemperature(n_clusters=3).fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ... )
    >>> cal.cluster_temperatures_.shape
    (3,)
    """

    uses_features = True

    n_clusters: Count = 8
    _: KW_ONLY
    n_init: Count = 1
    min_cluster_size: Size = 20

    def _learn(self, data: CalibrationData) -> None:
        weights = self._weigh(data)
        partition = data.partition(
            self.n_clusters, n_init=self.n_init, random_state=self.random_state
        )
        fitted = fit_cluster_temperatures(
            replace(data, weights=weights), partition, self.min_cluster_size, 0.0
        )
        self.clusters_ = partition.clusters
        self.cluster_temperatures_ = fitted.temperatures
        self.cluster_status_ = fitted.status
        self.n_fallbacks_ = int(fitted.fallback.sum())
        self.temperature_ = float(fitted.set_level.temperature[0])
        temperature = fitted.temperatures[partition.assignment]
        remember_quality(self, data, temperature, str(fitted.set_level.status[0]))

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.cluster_temperatures_[self.clusters_.assign(features)[0]]
