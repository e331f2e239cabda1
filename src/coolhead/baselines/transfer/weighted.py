"""Temperatures from labelled rows weighted to resemble an unlabelled target.

This leaves the setting of domain generalisation: data of the target is needed.
"""

from typing import Any, Self

import numpy as np

from coolhead.baselines.transfer.target import count_effective, importance_weights
from coolhead.calibrators.base import FitData, TemperatureCalibrator
from coolhead.calibrators.clustered.calibrators import fit_cluster_temperatures
from coolhead.calibrators.quality import judge_temperatures, status_beyond
from coolhead.calibrators.temperature import set_level
from coolhead.numerics.temperature import Solution, Status
from coolhead.shift.clusters import partition_features
from coolhead.shift.ratio import DensityRatio
from coolhead.shift.weights import domain_sample_sizes


class WeightedTemperature(TemperatureCalibrator):
    """One temperature by importance-weighted likelihood (WTS).

    Fit it on labelled source rows (as published) or on the calibration domains.

    Parameters
    ----------
    min_domain_share : in [0, 1]. With `sample_domain`, a domain is dropped when its
        effective sample size is a smaller share of its rows than this; the domain
        with the largest share always stays. 0 keeps all.
    estimator, max_weight : see `coolhead.shift.density_ratio`; "published" gives the
        weights of the released code of TransCal and CPCS, neither cut nor scaled.
    random_state : seed of the density ratio.

    Attributes
    ----------
    temperature_ : float
    status_, nll_, nll_uncalibrated_ : of the fit set, without importance weights.
    density_ratio_ : coolhead.shift.DensityRatio, with its `unreliable` flag.
    effective_sample_size_ : of the weights used.
    domain_shares_ : {domain: effective share of its rows}, kept_domains_ : those used.
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
        """Minimise the weighted negative log-likelihood.

        Parameters
        ----------
        logits, labels, features : (n, k), (n,), (n, d) of labelled rows.
        target_features : (m, d) of unlabelled target rows.
        target_logits : never read; taken so that all transfer methods share a call.
        reference_features : (r, d) of source training rows, optional.
        sample_domain, sample_weight : (n,), optional.
        density_ratio : at exactly these rows, to share one estimate between methods;
            `target_features` and `reference_features` are then not read again.
        """
        data = self._begin_fit(logits, labels, None, sample_domain, sample_weight)
        weights = weigh_rows(
            self, data, features, target_features, reference_features, density_ratio
        )
        solution = set_level(data, weights)
        self.temperature_ = float(solution.temperature[0])
        remember_quality(self, data, self.temperature_, str(solution.status[0]))
        return self

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.full(len(logits), self.temperature_)


class WeightedClusterTemperature(TemperatureCalibrator):
    """The temperature of the nearest cluster, with importance weights inside each.

    The mass of a cluster cancels: only the shift inside clusters is weighted away.

    Parameters
    ----------
    n_clusters, n_init, min_cluster_size : as in `NearestClusterTemperature`.
    min_domain_share, estimator, max_weight, random_state : as in
        `WeightedTemperature`.

    Attributes
    ----------
    As `WeightedTemperature`, and cluster_temperatures_ (k,), clusters_,
    n_fallbacks_, cluster_status_ (k,).
    """

    uses_features = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 1,
        min_cluster_size: int = 20,
        min_domain_share: float = 0.0,
        estimator: str = "discriminator",
        max_weight: float = 50.0,
        random_state: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.min_cluster_size = min_cluster_size
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
        """Cluster the labelled rows and fit each cluster with weights.

        The arguments are those of `WeightedTemperature.fit`.
        """
        data = self._begin_fit(logits, labels, features, sample_domain, sample_weight)
        weights = weigh_rows(
            self, data, features, target_features, reference_features, density_ratio
        )
        partition = partition_features(
            data.features,
            self.n_clusters,
            n_init=self.n_init,
            random_state=self.random_state,
        )
        fitted = fit_cluster_temperatures(
            data._replace(weights=weights), partition, self.min_cluster_size, 0.0
        )
        self.clusters_ = partition.clusters
        self.cluster_temperatures_ = fitted.temperatures
        self.cluster_status_ = fitted.status
        self.n_fallbacks_ = int(fitted.fallback.sum())
        self.temperature_ = float(fitted.set_level.temperature[0])
        temperature = fitted.temperatures[partition.assignment]
        remember_quality(self, data, temperature, str(fitted.set_level.status[0]))
        return self

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.cluster_temperatures_[self.clusters_.assign(features)[0]]


def weigh_rows(
    calibrator: Any,
    data: FitData,
    features: Any,
    target_features: Any,
    reference_features: Any,
    ratio: DensityRatio | None,
) -> np.ndarray:
    """Weights (n,) of the labelled rows; what was found is kept on the calibrator."""
    if not 0 <= calibrator.min_domain_share <= 1:
        raise ValueError(
            f"min_domain_share is {calibrator.min_domain_share}; wanted a number in "
            "[0, 1]"
        )
    name = type(calibrator).__name__
    if ratio is None:
        ratio = importance_weights(
            name,
            features,
            len(data.labels),
            target_features,
            reference_features,
            estimator=calibrator.estimator,
            max_weight=calibrator.max_weight,
            random_state=calibrator.random_state,
        )
    elif len(ratio.weights) != len(data.labels):
        raise ValueError(
            f"density_ratio has {len(ratio.weights)} weights; wanted one for each of "
            f"the {len(data.labels)} rows of logits"
        )
    weights = ratio.weights if data.weights is None else ratio.weights * data.weights
    calibrator.density_ratio_ = ratio
    calibrator.domain_shares_, calibrator.kept_domains_ = {}, None
    if data.domains is not None:
        sizes = domain_sample_sizes(ratio.weights, data.domains)
        shares = {domain: share for domain, (share, _) in sizes.items()}
        lowest = min(calibrator.min_domain_share, max(shares.values()))
        kept = [domain for domain, share in shares.items() if share >= lowest]
        calibrator.domain_shares_, calibrator.kept_domains_ = shares, kept
        weights = np.where(np.isin(data.domains, kept), weights, 0.0)
    calibrator.effective_sample_size_ = count_effective(name, weights)
    return weights


def remember_quality(
    calibrator: Any, data: FitData, temperature: float | np.ndarray, status: str
) -> None:
    """Store status and losses of a temperature fitted on these rows."""
    quality = judge_temperatures(
        data.rows.logits, data.labels, temperature, data.weights, status
    )
    calibrator.status_, calibrator.nll_, calibrator.nll_uncalibrated_ = quality


def remember_beyond(
    calibrator: Any, data: FitData, temperature: np.ndarray, common: Solution
) -> None:
    """Store the quality of T(x), (n,), whose fit started at the common temperature."""
    remember_quality(calibrator, data, temperature, Status.CONVERGED)
    if calibrator.status_ == Status.CONVERGED != common.status[0]:
        calibrator.status_ = status_beyond(common, temperature, calibrator.nll_)
