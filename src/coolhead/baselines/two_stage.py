"""A calibrator of class scores behind a temperature of each sample."""

from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coolhead.baselines.classwise.ets import EnsembleTemperatureScaling
from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.calibrators.base import fresh
from coolhead.calibrators.quality import is_above
from coolhead.numerics.checks import as_logits
from coolhead.numerics.softmax import log_loss_rows
from coolhead.numerics.temperature import Status


class TwoStageCalibration(BaseEstimator):
    """base(z / T(x)): first T(x) evens out the samples, then `base` sees them all.

    With the defaults this is DAC as published, whose second stage is ETS.

    Parameters
    ----------
    first : temperature calibrator that gives T(x); None for DensityAwareTemperature.
    base : calibrator of the scaled logits with `fit` and `predict_proba`; None for
        EnsembleTemperatureScaling.

    Attributes
    ----------
    first_, base_ : the fitted stages.
    status_, nll_, nll_uncalibrated_, accuracy_change_ : of the fit set.
    """

    n_classes_: int
    n_features_: int | None

    def __init__(self, first: Any = None, base: Any = None):
        self.first = first
        self.base = base

    @property
    def uses_features(self) -> bool:
        """Whether T(x) depends on features."""
        return self.first is None or bool(self.first.uses_features)

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        reference_features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit T(x), then `base` on the scaled logits of the same rows.

        `reference_features` reach the first stage if its `fit` names them.
        """
        first = DensityAwareTemperature() if self.first is None else self.first
        base = EnsembleTemperatureScaling() if self.base is None else self.base
        given = {
            "features": features,
            "sample_domain": sample_domain,
            "sample_weight": sample_weight,
        }
        reference = {}
        if "reference_features" in signature(first.fit).parameters:
            reference["reference_features"] = reference_features
        self.first_ = fresh(first).fit(logits, labels, **given, **reference)
        self.n_classes_ = self.first_.n_classes_
        scaled = self._scaled(logits, features)
        self.base_ = fresh(base).fit(scaled, labels, **given)
        widths = [getattr(s, "n_features_", None) for s in (self.first_, self.base_)]
        self.n_features_ = next((width for width in widths if width), None)
        self._judge(as_logits(logits), np.asarray(labels), sample_weight)
        return self

    def predict_proba(self, logits: Any, features: Any = None) -> np.ndarray:
        """Calibrated probabilities (n, k)."""
        check_is_fitted(self)
        return self.base_.predict_proba(self._scaled(logits, features), features)

    def confidence(
        self, logits: Any, features: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated confidence and predicted class, (n,) each."""
        check_is_fitted(self)
        return self.base_.confidence(self._scaled(logits, features), features)

    def _scaled(self, logits: Any, features: Any) -> np.ndarray:
        temperature = self.first_.temperature(logits, features)
        # Differences decide; far from the origin float32 would round them away.
        array = as_logits(logits).astype(np.float64)
        array -= array.max(axis=1, keepdims=True)
        return array / temperature[:, None]

    def _judge(
        self, logits: np.ndarray, labels: np.ndarray, sample_weight: Any
    ) -> None:
        """The second stage compares with z / T(x); the user compares with z."""
        weights = None if sample_weight is None else np.asarray(sample_weight, float)
        before = log_loss_rows(logits, labels, 1.0)
        self.nll_uncalibrated_ = float(np.average(before, weights=weights))
        self.nll_ = self.base_.nll_
        self.accuracy_change_ = getattr(self.base_, "accuracy_change_", 0.0)
        above = is_above(self.nll_, self.nll_uncalibrated_)
        self.status_ = str(
            Status.NLL_ABOVE_UNCALIBRATED if above else self.first_.status_
        )
