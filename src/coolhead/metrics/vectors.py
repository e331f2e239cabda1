"""From labels and probabilities to correctness and confidence, checked."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.arrays import readable
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_labels
from coolhead.numerics.class_names import column_names
from coolhead.numerics.probabilities import check_probabilities

# A softmax in float32 may exceed one by its rounding error, never by more.
ROUNDING = 1e-6


def correctness_and_confidence(
    labels: ArrayLike, probabilities: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """What every top-label metric works on.

    Parameters
    ----------
    labels : (n,) class indices or names, or (n,) correctness (bool or 0/1). Names are
        those of the columns of a frame or, of an array, sorted as in scikit-learn.
    probabilities : (n, k) probabilities, or (n,) confidence of the predicted class
        The number of dimensions says which of the two pairs is meant.

    Returns
    -------
    correct : (n,) bool, integer or float array of zeros and ones
    confidence : (n,) float64 in [0, 1]
    """
    if np.ndim(probabilities) != 1:
        names = column_names(probabilities)
        return _top_label(labels, check_probabilities(probabilities), names)
    confidence = check_confidence(probabilities)
    return check_correctness(labels, len(confidence)), confidence


def check_confidence(confidence: Any) -> np.ndarray:
    """Float64 values in [0, 1]; an excess of rounding size is cut off."""
    array = _vector(confidence, "confidence")
    low, high = array.min(), array.max()
    # A comparison with NaN is false, so this refuses NaN too.
    if not (low >= 0 and high <= 1 + ROUNDING):
        bad = int(np.argmin((array >= 0) & (array <= 1 + ROUNDING)))
        raise ValueError(
            f"confidence holds {array[bad]} in row {bad}; wanted values in [0, 1]"
        )
    return np.minimum(array, 1.0) if high > 1 else array


def check_correctness(correct: Any, n_rows: int) -> np.ndarray:
    """Zeros and ones (or booleans), one per confidence."""
    array = np.asarray(readable(correct, "correctness"))
    if array.dtype.kind not in "biu":
        array = _vector(correct, "correctness")
    if array.shape != (n_rows,):
        raise ValueError(
            f"correctness has shape {array.shape}; wanted ({n_rows},), one entry "
            "per confidence"
        )
    if not _only_zeros_and_ones(array):
        bad = int(np.argmin((array == 0) | (array == 1)))
        raise ValueError(
            f"correctness holds {array[bad]} in row {bad}; wanted 0 or 1. Beside a "
            "one-dimensional confidence stands whether the prediction was right; "
            "class labels need (n, k) probabilities"
        )
    return array


def check_rows(values: Any, name: str) -> np.ndarray:
    """A finite (n,) float64 array: one score per row."""
    array = _vector(values, name)
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ValueError(
            f"{name} holds {array[bad]} in row {bad}; wanted finite numbers"
        )
    return array


def _vector(values: Any, name: str) -> np.ndarray:
    values = readable(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError(f"it has type {array.dtype}")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is not numeric ({error}); wanted a vector of real numbers"
        ) from error
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(
            f"{name} has shape {array.shape}; wanted a vector with at least one entry"
        )
    return array


def _only_zeros_and_ones(array: np.ndarray) -> bool:
    if array.dtype.kind == "b":
        return True
    if array.dtype.kind in "iu":
        return bool(array.min() >= 0 and array.max() <= 1)
    return bool(((array == 0) | (array == 1)).all())


def _top_label(
    labels: Any, probabilities: np.ndarray, class_names: tuple[str, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    n_rows, n_classes = probabilities.shape
    labels = check_labels(labels, n_classes, n_rows, class_names)
    correct = np.empty(len(labels), bool)
    confidence = np.empty(len(labels))
    for rows in row_blocks(*probabilities.shape):
        block = probabilities[rows]
        top = block.argmax(axis=1)
        correct[rows] = top == labels[rows]
        confidence[rows] = block[np.arange(len(block)), top]
    return correct, np.minimum(confidence, 1.0, out=confidence)
