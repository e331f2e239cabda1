"""A fitted calibrator moved to one domain: log T' = m + offset + slope (log T - m)."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.shift.clusters import Clusters


class OffsetTemperature(TemperatureCalibrator):
    """What `NewDomain` hands out: another calibrator's T(x), moved as a whole.

    Parameters
    ----------
    base : a fitted calibrator that divides the logits by a temperature.
    offset : added to log T of every row.
    slope : how much of the shape of log T(x) is kept; 1 keeps all of it.
    middle : the log T that stays where it is when the slope changes.

    Attributes
    ----------
    temperature_ : float, the base's set-level temperature, moved alike.
    status_ : str, that of the base and by how much it was moved.
    """

    def __init__(
        self,
        base: TemperatureCalibrator,
        offset: float = 0.0,
        slope: float = 1.0,
        middle: float = 0.0,
    ):
        self.base = base
        self.offset = offset
        self.slope = slope
        self.middle = middle

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if the base uses features."""
        return self.base.uses_features

    @property
    def takes(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the base takes."""
        return self.base.takes

    @property
    def clusters_(self) -> Clusters:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those of the base."""
        return self.base.clusters_

    def fit(self, logits: ArrayLike, labels: ArrayLike, **given: Any) -> Self:
        """Refused: the offset was found by `NewDomain`, which has no labelled set."""
        raise TypeError(
            "OffsetTemperature is not fitted: it moves a calibrator that was; wanted "
            "NewDomain(calibrator, logits, features).with_labels(rows, labels)"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.base, "n_classes_")

    @property
    def n_classes_(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of columns of the logits."""
        return self.base.n_classes_

    @property
    def n_features_(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Width of the features, None where they are not used."""
        return self.base.n_features_

    @property
    def n_features_in_(self) -> int:
        """The same as `n_classes_`, under the name scikit-learn looks for."""
        return self.base.n_classes_

    @property
    def temperature_(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The base's set-level temperature, moved like every row's."""
        return float(np.exp(self._moved(np.log(self.base.temperature_))))

    @property
    def status_(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How the base was fitted, and by how much it was moved."""
        return f"{self.base.status_}; moved by {self.offset:+.3f} in log T"

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.exp(self._moved(np.log(self.base._temperature(logits, features))))

    def _moved(self, log_temperature: Any) -> Any:
        away = log_temperature - self.middle
        return self.middle + self.offset + self.slope * away
