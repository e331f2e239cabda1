"""Unlabelled target data: checked once, turned into importance weights."""

import warnings
from typing import Any

import numpy as np

from coolhead.numerics.checks import check_features
from coolhead.shift.inputs import feature_rows
from coolhead.shift.ratio import FEW_SAMPLES, DensityRatio, density_ratio
from coolhead.shift.weights import effective_sample_size


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
    return density_ratio(features, target, reference_features=reference, **settings)


def count_effective(method: str, weights: np.ndarray) -> float:
    """Effective sample size of the weights of a fit; fewer than 30 are warned of."""
    size = effective_sample_size(weights)
    if size < FEW_SAMPLES:
        warnings.warn(
            f"{method}: the importance weights leave {size:.1f} effective samples of "
            f"{len(weights)}, fewer than {FEW_SAMPLES}; a handful of rows decides this "
            "fit",
            stacklevel=4,
        )
    return size


def _same_width(method: str, rows: Any, name: str, features: np.ndarray) -> np.ndarray:
    if rows is None:
        msg = (
            f"{name} is missing: {method} needs unlabelled target data; wanted an "
            f"array (m, {features.shape[1]})"
        )
        raise ValueError(msg)
    return feature_rows(rows, name, features.shape[1])
