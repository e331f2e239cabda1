"""Features that enter a comparison of two sets of rows."""

from typing import Any

import numpy as np

from coolhead.numerics.checks import check_features


def feature_rows(
    values: Any, name: str, width: int | None = None, other: str = "features"
) -> np.ndarray:
    """A finite (n, d) array with n, d > 0, from an array or an archive.

    width : wanted number of columns, that of the argument called `other`.
    """
    values = getattr(values, "features", values)
    if values is None:
        raise ValueError(f"{name} is missing; wanted features (n, d)")
    n_rows = len(values) if np.ndim(values) else 0
    if np.ndim(values) != 2 or not n_rows:
        raise ValueError(
            f"{name} must have shape (n, d) with n, d > 0, found {np.shape(values)}"
        )
    array = check_features(values, n_rows, name=name)
    if width is not None and array.shape[1] != width:
        raise ValueError(
            f"{name} has {array.shape[1]} columns, {other} has {width}; wanted the "
            "same number of columns in both"
        )
    return array
