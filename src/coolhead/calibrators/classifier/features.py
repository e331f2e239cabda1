"""What the calibrator of a scikit-learn classifier sees of X as features."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from coolhead.calibrators.classifier.table import TablePreparation, is_plain
from coolhead.models.reading import check_leaves, leaves_of
from coolhead.numerics.checks import check_features

LEAF_DIMENSIONS = 16


def prepare_features(features: str | Callable | None, estimator: Any, X: Any) -> Any:
    """What can be learned, and refused, before the first estimator is fitted.

    Returns the fitted preparation of a table, None where there is none (yet).
    """
    if callable(features):
        return None
    if features == "leaves":
        check_leaves(estimator)
        return None
    if features == "table":
        _refuse_sparse(X)
        return TablePreparation().fit(X)
    if features is not None:
        _pipeline_until(estimator, features)
        return None
    _refuse_sparse(X)
    if is_plain(X):
        dense_features(X)
        return None
    return TablePreparation().fit(X)


def prepare_leaves(estimator: Any, X: Any) -> Any:
    """Trees that put rows into the same leaves put them near each other."""
    leaves = leaves_of(estimator, X)
    one_hot = OneHotEncoder(handle_unknown="ignore").fit(leaves)
    n_leaves = sum(map(len, one_hot.categories_))
    width = max(1, min(LEAF_DIMENSIONS, n_leaves - 1))
    return make_pipeline(one_hot, TruncatedSVD(width, random_state=0)).fit(leaves)


def estimator_features(
    estimator: Any, X: Any, features: str | Callable | None, preparation: Any
) -> np.ndarray:
    """Finite features (n, d) of rows of X."""
    if callable(features):
        return dense_features(features(estimator, X))
    if features == "leaves":
        return preparation.transform(leaves_of(estimator, X))
    if preparation is not None:
        return preparation.transform(X)
    if features is None:
        return dense_features(X)
    return dense_features(_pipeline_until(estimator, features).transform(X))


def dense_features(found: Any) -> np.ndarray:
    """A finite (n, d) array; anything else is refused with what to do instead."""
    remedy = (
        "give features='table', which prepares any table, the name of a pipeline step "
        "or a function that makes them, or take a calibrator without features, such as "
        "TemperatureScaling()"
    )
    _refuse_sparse(found)
    try:
        return check_features(found, None, name="X")
    except (ValueError, TypeError) as error:
        told = f"{error} These would be the features of the calibrator: {remedy}"
        raise type(error)(told) from error


def _refuse_sparse(found: Any) -> None:
    if hasattr(found, "toarray"):
        raise ValueError(
            "the features of this calibrator would be a sparse matrix; wanted a dense "
            "(n, d) array: give features= the name of a pipeline step or a function "
            "that makes one, or take a calibrator without features, such as "
            "TemperatureScaling()"
        )


def _pipeline_until(estimator: Any, name: str) -> Any:
    """The steps of a pipeline up to the one of that name."""
    pipeline = getattr(estimator, "estimator", estimator)  # inside a FrozenEstimator
    steps = getattr(pipeline, "named_steps", None)
    if steps is None or name not in steps:
        raise ValueError(
            f"features is {name!r}; wanted 'table', 'leaves', or the name of a "
            "pipeline step"
            + (f", one of {list(steps)}" if steps else ", but there is no pipeline")
        )
    return pipeline[: list(steps).index(name) + 1]
