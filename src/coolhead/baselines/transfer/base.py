"""What methods have in common that weigh labelled rows to resemble the target.

They leave the setting of domain generalisation: data of the target is needed.
"""

import warnings
from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Seed, parameters
from coolhead.shift.ratio import FEW_SAMPLES
from coolhead.shift.weights import domain_sample_sizes, effective_sample_size


@parameters
class TransferCalibrator(TemperatureCalibrator):
    """A temperature from labelled rows and unlabelled rows of the target.

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

    takes = ("features", "reference", "target")
    needs = ("features", "target")
    reads_target_logits = False

    _: KW_ONLY
    min_domain_share: float = 0.0
    estimator: str = "discriminator"
    max_weight: float = 50.0
    random_state: Seed = 0

    def fit(
        self,
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        features: ArrayLike | None = None,
        target_features: ArrayLike | None = None,
        target_logits: ArrayLike | None = None,
        reference_features: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from labelled rows under weights that make them resemble the target.

        Parameters
        ----------
        logits, labels, features : (n, k), (n,), (n, d) of labelled rows.
        target_features, target_logits : (m, d), (m, k) of unlabelled target rows; the
            logits are read by TransCal alone.
        reference_features : (r, d) of source training rows, optional.
        sample_domain, sample_weight : (n,), optional.
        """
        data = CalibrationData.of(
            logits,
            labels,
            features=features,
            sample_domain=sample_domain,
            reference_features=reference_features,
            sample_weight=sample_weight,
            target_features=target_features,
            target_logits=target_logits if self.reads_target_logits else None,
        )
        return self.fit_data(data)

    def _weigh(self, data: CalibrationData) -> np.ndarray:
        """Weights (n,) of the labelled rows; what was found is remembered."""
        if not 0 <= self.min_domain_share <= 1:
            raise ValueError(
                f"min_domain_share is {self.min_domain_share}; wanted a number in "
                "[0, 1]"
            )
        ratio = data.density_ratio(
            estimator=self.estimator,
            max_weight=self.max_weight,
            random_state=self.random_state,
        )
        weights = ratio.weights
        weights = weights if data.weights is None else weights * data.weights
        self.density_ratio_ = ratio
        self.domain_shares_, self.kept_domains_ = {}, None
        if data.domains_known:
            sizes = domain_sample_sizes(ratio.weights, data.sample_domain)
            shares = {domain: share for domain, (share, _) in sizes.items()}
            lowest = min(self.min_domain_share, max(shares.values()))
            kept = [domain for domain, share in shares.items() if share >= lowest]
            self.domain_shares_, self.kept_domains_ = shares, kept
            weights = np.where(np.isin(data.sample_domain, kept), weights, 0.0)
        self.effective_sample_size_ = count_effective(type(self).__name__, weights)
        return weights


def count_effective(method: str, weights: np.ndarray) -> float:
    """Effective sample size of the weights of a fit; fewer than 30 are warned of."""
    size = effective_sample_size(weights)
    if size < FEW_SAMPLES:
        warnings.warn(
            f"{method}: the importance weights leave {size:.1f} effective samples of "
            f"{len(weights)}, fewer than {FEW_SAMPLES}; a handful of rows decides this "
            "fit",
            stacklevel=6,
        )
    return size
