"""A calibrator of class scores behind a temperature of each sample."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.baselines.classwise.ets import EnsembleTemperatureScaling
from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.calibrators.base import Calibrator
from coolhead.calibrators.data import CalibrationData, fresh
from coolhead.calibrators.quality import is_above
from coolhead.numerics.checks import check_logit_values
from coolhead.numerics.moments import summarise_rows
from coolhead.numerics.softmax import log_loss_rows
from coolhead.numerics.temperature import Status


class TwoStageCalibration(Calibrator):
    """base(z / T(x)): first T(x) evens out the samples, then `base` sees them all.

    With the defaults this is DAC as published, whose second stage is ETS.

    Parameters
    ----------
    first : temperature calibrator that gives T(x); None for DensityAwareTemperature.
    base : calibrator of the scaled logits; None for EnsembleTemperatureScaling.

    Attributes
    ----------
    first_, base_ : the fitted stages.
    status_, nll_, nll_uncalibrated_, accuracy_change_ : of the fit set.
    """

    def __init__(self, first: Any = None, base: Any = None):
        self.first = first
        self.base = base

    def _stages(self) -> tuple[Any, Any]:
        first = DensityAwareTemperature() if self.first is None else self.first
        return first, EnsembleTemperatureScaling() if self.base is None else self.base

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether a stage depends on features."""
        return any(stage.uses_features for stage in self._stages())

    @property
    def takes(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the two stages take together."""
        kinds = [kind for stage in self._stages() for kind in stage.takes]
        return tuple(dict.fromkeys(kinds))

    def _learn(self, data: CalibrationData) -> None:
        first, base = self._stages()
        self.first_ = fresh(first).fit_part(data)
        scaled = self._scaled(data.logits, data.features)
        rows = summarise_rows(scaled, data.labels, scores=True)
        self.base_ = fresh(base).fit_part(replace(data, rows=rows))
        self._judge(data)

    def predict_proba(
        self, logits: ArrayLike, features: ArrayLike | None = None
    ) -> np.ndarray:
        """Calibrated probabilities (n, k)."""
        logits, features = self._check_query(logits, features)
        return self.base_.predict_proba(self._scaled(logits, features), features)

    def confidence(
        self, logits: ArrayLike, features: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated confidence and predicted class, (n,) each."""
        logits, features = self._check_query(logits, features)
        return self.base_.confidence(self._scaled(logits, features), features)

    def _scaled(self, logits: np.ndarray, features: Any) -> np.ndarray:
        check_logit_values(logits, "logits")
        temperature = self.first_._temperatures(logits, features)
        # Differences decide; far from the origin float32 would round them away.
        array = logits.astype(np.float64)
        array -= array.max(axis=1, keepdims=True)
        return array / temperature[:, None]

    def _judge(self, data: CalibrationData) -> None:
        """The second stage compares with z / T(x); the user compares with z."""
        before = log_loss_rows(data.logits, data.labels, 1.0)
        self.nll_uncalibrated_ = float(np.average(before, weights=data.weights))
        self.nll_ = self.base_.nll_
        self.accuracy_change_ = getattr(self.base_, "accuracy_change_", 0.0)
        above = is_above(self.nll_, self.nll_uncalibrated_)
        self.status_ = str(
            Status.NLL_ABOVE_UNCALIBRATED if above else self.first_.status_
        )
