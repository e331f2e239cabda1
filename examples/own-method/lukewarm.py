"""Half way, in log T, from the classifier as it is to one temperature for all."""

import numpy as np

import coolhead as ch
from coolhead.calibrators import CalibrationData, TemperatureCalibrator


class Lukewarm(TemperatureCalibrator):
    """Gets `data.logits` and `data.labels`; `takes = ("features",)` would get more."""

    label = "Lukewarm"

    def _learn(self, data: CalibrationData) -> None:
        fitted = ch.fit_temperature(data.logits, data.labels)
        self.temperature_ = float(np.sqrt(fitted.temperature))
        self.status_ = fitted.status
