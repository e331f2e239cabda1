"""A calibrator that was just read, tried out before anybody trusts it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

MAX_WIDTH = 2**24


def predicts_from_logits(calibrator: Any) -> bool:
    """False for a `CalibratedClassifier`, which wants what its classifier wants."""
    return hasattr(calibrator, "uses_features")


def try_out(calibrator: Any) -> None:
    """Predict two rows, so that a forged file fails now and not in service."""
    check_is_fitted(calibrator)
    _check_temperatures(calibrator)
    if not predicts_from_logits(calibrator):
        return
    n_classes, n_features = calibrator.n_classes_, _width(calibrator)
    if not 2 <= n_classes <= MAX_WIDTH or not 0 <= n_features <= MAX_WIDTH:
        raise ValueError(f"{n_classes} classes and {n_features} features")
    logits = np.zeros((2, n_classes))
    logits[1, 0] = 2.0
    features = np.zeros((2, n_features)) if n_features else None
    with np.errstate(all="ignore"):
        probabilities = calibrator.predict_proba(logits, features)
        if hasattr(calibrator, "temperature"):
            _refuse_impossible(calibrator.temperature(logits, features), "T(x)")
    if probabilities.shape != logits.shape or not np.isfinite(probabilities).all():
        raise ValueError("it does not predict probabilities")


def _check_temperatures(calibrator: Any) -> None:
    for part in _parts(calibrator):
        for name, value in vars(part).items():
            if name.endswith(("temperature_", "temperatures_")):
                _refuse_impossible(value, name)


def _refuse_impossible(temperature: Any, name: str) -> None:
    array = np.asarray(temperature, float)
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{name} is not positive and finite everywhere")


def _width(calibrator: Any) -> int:
    """Number of features of the first part that uses any."""
    widths = (getattr(part, "n_features_", None) for part in _parts(calibrator))
    return next((width for width in widths if width), 0)


def _parts(value: Any) -> Iterator[Any]:
    """A calibrator and all estimators that it is made of."""
    if isinstance(value, BaseEstimator):
        yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)
