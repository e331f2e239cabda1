"""A calibrator of class scores behind a temperature of each sample."""

from dataclasses import replace
from typing import Any

import numpy as np

from coolhead.baselines.classwise import EnsembleTemperatureScaling
from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.calibrators.base import (
    Answer,
    Calibrator,
    OfParts,
    TemperatureCalibrator,
    is_above,
)
from coolhead.calibrators.data import CalibrationData, fresh
from coolhead.calibrators.parameters import parameters
from coolhead.numerics.checks import check_logit_values
from coolhead.numerics.moments import summarise_rows
from coolhead.numerics.softmax import log_loss_rows
from coolhead.numerics.solver import Status


@parameters
class TwoStageCalibration(OfParts):
    """base(z / T(x)): a temperature of each sample, then a calibrator of all classes.

    With the defaults this is DAC as published, whose second stage is ETS.

    Parameters
    ----------
    first : TemperatureCalibrator, default=None
        Gives T(x); None for `DensityAwareTemperature`.
    base : Calibrator, default=None
        Calibrates the scaled logits; None for `EnsembleTemperatureScaling`.

    Attributes
    ----------
    first_, base_ : Calibrator
        The fitted stages.
    status_, nll_, nll_uncalibrated_, accuracy_change_
        Of the fit set.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> cal = ch.baselines.TwoStageCalibration(
    ...     ch.NearestClusterTemperature(2), ch.baselines.VectorScaling()
    ... )
    >>> cal = cal.fit(data.logits, data.labels, features=data.features)
    >>> cal.nll_ < cal.nll_uncalibrated_
    True
    """

    first: TemperatureCalibrator | None = None
    base: Calibrator | None = None

    def _parts(self) -> tuple[Any, Any]:
        first = DensityAwareTemperature() if self.first is None else self.first
        return first, EnsembleTemperatureScaling() if self.base is None else self.base

    def _learn(self, data: CalibrationData) -> None:
        first, base = self._parts()
        self.first_ = fresh(first).fit_part(data)
        scaled = self._scaled(data.logits, data.features)
        rows = summarise_rows(scaled, data.labels, scores=True)
        self.base_ = fresh(base).fit_part(replace(data, rows=rows))
        # The second stage compares with z / T(x); the user compares with z.
        before = log_loss_rows(data.logits, data.labels, 1.0)
        self.nll_uncalibrated_ = float(np.average(before, weights=data.weights))
        self.nll_ = self.base_.nll_
        self.accuracy_change_ = getattr(self.base_, "accuracy_change_", 0.0)
        above = is_above(self.nll_, self.nll_uncalibrated_)
        self.status_ = str(
            Status.NLL_ABOVE_UNCALIBRATED if above else self.first_.status_
        )

    def _predict(self, logits: np.ndarray, features: Any) -> Answer:
        scaled = self._scaled(logits, features)
        return self.base_._predict(scaled, features)[0], None

    def _confidence(
        self, logits: np.ndarray, features: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.base_._confidence(self._scaled(logits, features), features)

    def _scaled(self, logits: np.ndarray, features: Any) -> np.ndarray:
        check_logit_values(logits, "logits")
        temperature = self.first_._temperatures(logits, features)
        # Differences decide; far from the origin float32 would round them away.
        array = logits.astype(np.float64)
        array -= array.max(axis=1, keepdims=True)
        return array / temperature[:, None]
