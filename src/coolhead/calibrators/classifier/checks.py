"""What `CalibratedClassifier` accepts as rows."""

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets

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
