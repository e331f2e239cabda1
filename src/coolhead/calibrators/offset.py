"""A fitted calibrator moved to one domain: its temperatures and its class offsets.

log T' = m + offset + slope (log T - m), and class offsets of the domain's own. The
slope is 1 but for files of version 0.2: class offsets serve its purpose better.
"""

from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from coolhead.calibrators.base import OfParts, TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import parameters


@parameters
class OffsetTemperature(OfParts, TemperatureCalibrator):
    """What `NewDomain` hands out: another calibrator's T(x), moved as a whole.

    Parameters
    ----------
    base : a fitted calibrator that divides the logits by a temperature.
    offset : added to log T of every row.
    slope : how much of the shape of log T(x) is kept; 1 keeps all of it.
    middle : the log T that stays where it is when the slope changes.
    class_offsets : ndarray of shape (n_classes,), default=None
        In place of the base's; None keeps those.

    Attributes
    ----------
    temperature_ : float, the base's set-level temperature, moved alike.
    status_ : str, that of the base and by how much it was moved.
    """

    base: TemperatureCalibrator
    offset: float = 0.0
    slope: float = 1.0
    middle: float = 0.0
    class_offsets: Any = None

    def _parts(self) -> list[TemperatureCalibrator]:
        return [self.base]

    def _fit(self, data: CalibrationData) -> NoReturn:
        """Refused on every path: `NewDomain` found the offset, and nobody else can."""
        raise TypeError(
            "OffsetTemperature is not fitted: it moves a calibrator that was; wanted "
            "NewDomain(calibrator, logits, features).with_labels(rows, labels)"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.base, "n_classes_")

    # What a prediction is checked against, and what coverage is measured in.
    n_classes_ = property(attrgetter("base.n_classes_"))  # pyright: ignore
    n_features_in_ = n_classes_
    n_features_ = property(attrgetter("base.n_features_"))  # pyright: ignore
    class_names_ = property(attrgetter("base.class_names_"))  # pyright: ignore
    clusters_ = property(attrgetter("base.clusters_"))  # pyright: ignore

    @property
    def temperature_(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The base's set-level temperature, moved like every row's."""
        return float(np.exp(self._moved(np.log(self.base.temperature_))))

    @property
    def class_offsets_(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those of the domain, else those of the base."""
        if self.class_offsets is None:
            return self.base.class_offsets_
        return np.asarray(self.class_offsets)

    @property
    def status_(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How the base was fitted, and by how much it was moved."""
        return f"{self.base.status_}; moved by {self.offset:+.3f} in log T"

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.exp(self._moved(np.log(self.base._temperature(logits, features))))

    def _moved(self, log_temperature: Any) -> Any:
        away = log_temperature - self.middle
        return self.middle + self.offset + self.slope * away
