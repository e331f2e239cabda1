"""What `CalibratedClassifier` accepts."""

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets

from coolhead.calibrators.parameters import check_parameters
from coolhead.numerics.arrays import refuse_missing


def check_rows(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X as it is, if it has as many rows as y, and y as classes without gaps."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    X, y = indexable(X, y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        refuse_missing(y, "y", "a label")
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return X, y


def check_parts(estimator: Any, calibrator: Any) -> None:
    """Refuse what cannot be an estimator or a calibrator, before anything is fitted."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator is {_told(estimator)}; wanted a classifier as scikit-learn "
            "knows them, such as LogisticRegression()"
        )
    known = not isinstance(calibrator, type) and hasattr(calibrator, "uses_features")
    if calibrator is not None and not known:
        raise TypeError(
            f"calibrator is {_told(calibrator)}; wanted a calibrator of coolhead, such "
            "as TemperatureScaling(), or None for AutoCalibrator()"
        )


def check_reach(calibrator: Any, domains: Any) -> None:
    """Refuse, before anything is fitted, a calibrator that could not be."""
    check_parameters(calibrator)
    name = type(calibrator).__name__
    if "target" in calibrator.needs:
        raise ValueError(
            f"calibrator is a {name}, which needs unlabelled rows of the target; "
            "wanted one that labelled rows are enough for, such as AutoCalibrator()"
        )
    if "domains" in calibrator.needs and domains is None:
        raise ValueError(
            f"sample_domain is missing: {name} learns from the difference between "
            "domains; wanted one domain per row"
        )


def _told(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else repr(value)
