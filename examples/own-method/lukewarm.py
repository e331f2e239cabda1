"""A temperature half way, in log T, between uncalibrated and set-level."""

import numpy as np

import coolhead as ch
from coolhead.calibrators import CalibrationData, TemperatureCalibrator


class Lukewarm(TemperatureCalibrator):
    """Fit on `data.logits` and `data.labels`; `takes = ("features",)` adds features."""

    label = "Lukewarm"

    def _learn(self, data: CalibrationData) -> None:
        fitted = ch.fit_temperature(data.logits, data.labels)
        self.temperature_ = float(np.sqrt(fitted.temperature))
        self.status_ = fitted.status
