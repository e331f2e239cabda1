"""Unlabelled target data: checked once, turned into importance weights."""

import warnings
from typing import Any

import numpy as np

from coolhead.numerics.inputs import check_features
from coolhead.shift.ratio import FEW_SAMPLES, DensityRatio, density_ratio


def importance_weights(
    method: str,
    features: Any,
    n_rows: int,
    target_features: Any,
    reference_features: Any,
    **settings: Any,
) -> DensityRatio:
    """Weights of the labelled rows under which they resemble the target.

    Parameters
    ----------
    method : name of the caller, for messages.
    features : (n, d) of the labelled rows.
    n_rows : n
    target_features : (m, d) of unlabelled target rows.
    reference_features : (r, d) of further rows from where the labelled ones come
        (source training data), or None.
    settings : see `coolhead.shift.density_ratio`.
    """
    features = check_features(features, n_rows)
    target = _same_width(method, target_features, "target_features", features)
    reference = None
    if reference_features is not None:
        reference = _same_width(
            method, reference_features, "reference_features", features
        )
    ratio = density_ratio(features, target, reference_features=reference, **settings)
    if ratio.effective_sample_size < FEW_SAMPLES:
        warnings.warn(
            f"{method}: the importance weights leave "
            f"{ratio.effective_sample_size:.1f} effective samples of {n_rows}, fewer "
            f"than {FEW_SAMPLES}; a handful of rows decides this fit",
            stacklevel=3,
        )
    return ratio


def _same_width(method: str, rows: Any, name: str, features: np.ndarray) -> np.ndarray:
    if rows is None:
        msg = (
            f"{name} is missing: {method} needs unlabelled target data; wanted an "
            f"array (m, {features.shape[1]})"
        )
        raise ValueError(msg)
    width = np.shape(rows)[1] if np.ndim(rows) == 2 else None
    if width is not None and width != features.shape[1]:
        msg = (
            f"{name} has {width} columns, features has {features.shape[1]}; wanted "
            "the same features for both"
        )
        raise ValueError(msg)
    return check_features(rows, len(rows), name=name)
