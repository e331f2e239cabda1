"""A fitted calibrator corrected for one domain.

log T' = m + offset + slope (log T - m), and class offsets of the domain. Only files of
version 0.2 have a slope other than 1: with class offsets it changes neither loss nor
ECE.
"""

from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from coolhead.calibrators.base import OfParts, TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import parameters


@parameters
class OffsetTemperature(OfParts, TemperatureCalibrator):
    """A calibrator whose log temperatures are moved by an offset; `NewDomain` makes it.

    Parameters
    ----------
    base : TemperatureCalibrator
        Fitted.
    offset : float, default=0.0
        Added to log T of every row.
    slope : float, default=1.0
        Factor of the deviations of log T(x) from `middle`.
    middle : float, default=0.0
        The log T that the slope does not change.
    class_offsets : ndarray of shape (n_classes,), default=None
        In place of those of the base; None keeps these.

    Attributes
    ----------
    temperature_ : float
        Set-level temperature of the base, moved by the offset.
    status_ : str
        Status of the base, and the offset.
    """

    base: TemperatureCalibrator
    offset: float = 0.0
    slope: float = 1.0
    middle: float = 0.0
    class_offsets: Any = None

    def _parts(self) -> list[TemperatureCalibrator]:
        return [self.base]

    def _fit(self, data: CalibrationData) -> NoReturn:
        """Refuse: only `NewDomain` learns the offset."""
        raise TypeError(
            "OffsetTemperature is not fitted: it moves a fitted calibrator; wanted "
            "NewDomain(calibrator, logits, features).with_labels(rows, labels)"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.base, "n_classes_")

    # Predictions are checked against these.
    n_classes_ = property(attrgetter("base.n_classes_"))  # pyright: ignore
    n_features_in_ = n_classes_
    n_features_ = property(attrgetter("base.n_features_"))  # pyright: ignore
    class_names_ = property(attrgetter("base.class_names_"))  # pyright: ignore
    clusters_ = property(attrgetter("base.clusters_"))  # pyright: ignore

    @property
    def temperature_(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Set-level temperature of the base, moved by the offset."""
        return float(np.exp(self._moved(np.log(self.base.temperature_))))

    @property
    def class_offsets_(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Class offsets of the domain, else of the base."""
        if self.class_offsets is None:
            return self.base.class_offsets_
        return np.asarray(self.class_offsets)

    @property
    def status_(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Status of the base, and the offset."""
        return f"{self.base.status_}; moved by {self.offset:+.3f} in log T"

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.exp(self._moved(np.log(self.base._temperature(logits, features))))

    def _moved(self, log_temperature: Any) -> Any:
        away = log_temperature - self.middle
        return self.middle + self.offset + self.slope * away
