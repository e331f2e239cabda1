"""Binned calibration errors: expected, maximum, classwise, debiased, signed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.bins import (
    N_BINS,
    Binning,
    ClassBins,
    ConfidenceBins,
    bin_rows,
    check_confidence,
    check_count,
    correctness_and_confidence,
    gap_sums,
)
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice, check_probabilities
from coolhead.numerics.classes import match_rows


def expected_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    classes: Any = None,
) -> float:
    """Mean absolute gap between accuracy and confidence over bins (ECE).

    ECE = sum_m (n_m / n) |accuracy_m - confidence_m| over bins ((m-1)/M, m/M], the
    first of which also holds 0.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    n_bins : int, default=15
        Number of bins.
    binning : {"width", "mass"}, default="width"
        Bins of equal width, or equally filled bins.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float
        ECE in [0, 1]. It is biased upward: compare `expected_calibration_error_null`.

    Examples
    --------
    >>> expected_calibration_error([1, 1, 0, 1], [0.875, 0.875, 0.625, 0.625])
    0.125
    """
    correct, confidence = correctness_and_confidence(labels, probabilities, classes)
    sums = gap_sums(correct, confidence, n_bins, binning)
    return float(np.abs(sums).sum() / len(confidence))


def maximum_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    classes: Any = None,
) -> float:
    """Largest absolute gap of any non-empty bin (MCE).

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    n_bins : int, default=15
        Number of bins.
    binning : {"width", "mass"}, default="width"
        Bins of equal width, or equally filled bins.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> from coolhead.metrics import maximum_calibration_error
    >>> maximum_calibration_error([1, 1, 0, 1], [0.875, 0.875, 0.75, 0.75], n_bins=4)
    0.25
    """
    return _bins(labels, probabilities, n_bins, binning, classes).maximum_error


def signed_calibration_gap(
    labels: ArrayLike, probabilities: ArrayLike, *, classes: Any = None
) -> float:
    """Mean confidence minus accuracy: positive means overconfident.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> from coolhead.metrics import signed_calibration_gap
    >>> signed_calibration_gap([1, 0], [0.75, 0.75])    # confidence 75 %, right in 50 %
    0.25
    """
    correct, confidence = correctness_and_confidence(labels, probabilities, classes)
    return float(confidence.mean() - correct.mean())


def classwise_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = N_BINS,
    classes: Any = None,
) -> float:
    """ECE of every class's probability against its frequency, averaged over classes.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Class numbers, or names.
    probabilities : array-like of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int, default=15
        Number of equal-width bins for each class.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> from coolhead.metrics import classwise_calibration_error
    >>> round(classwise_calibration_error([0, 1], [[0.75, 0.25], [0.75, 0.25]]), 3)
    0.25
    """
    n_bins = check_count(n_bins, "n_bins")
    probabilities, labels, _ = match_rows(
        probabilities, labels, classes, check_probabilities
    )
    n_rows, n_classes = probabilities.shape
    bins = ClassBins(labels, np.zeros(n_rows, np.intp), 1, n_classes, n_bins)
    for rows in row_blocks(n_rows, n_classes):
        block = probabilities[rows].astype(np.float64, copy=False)
        bins.add(rows, block, np.ones(len(block)))
    return float(np.abs(bins.gaps).sum() / (n_rows * n_classes))


def debiased_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    norm: Literal[1, 2] = 1,
    classes: Any = None,
) -> float:
    """Calibration error less the part that is noise of the bins' accuracies.

    norm=1 is on the scale of ECE: twice the plug-in value minus its expectation
    when the accuracies are redrawn from their normal approximation (in closed form,
    so nothing is random). It may be slightly negative, which keeps averages honest.
    norm=2 is the root of the debiased mean squared gap, cut off at zero.

    Bins with fewer than two rows have no estimate of their noise and are left out.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    n_bins : int, default=15
        Number of bins.
    binning : {"width", "mass"}, default="width"
        Bins of equal width, or equally filled bins.
    norm : {1, 2}, default=1
        Power of the differences that are averaged.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import debiased_calibration_error
    >>> right = np.arange(100) % 4 > 0    # 75 % right
    >>> round(debiased_calibration_error(right, np.full(100, 0.95)), 2)
    0.2
    """
    check_choice(norm, "norm", 1, 2)
    bins = _bins(labels, probabilities, n_bins, binning, classes)
    return bins.debiased_error(norm)


def _bins(
    labels: Any, probabilities: Any, n_bins: int, binning: Binning, classes: Any
) -> ConfidenceBins:
    pair = correctness_and_confidence(labels, probabilities, classes)
    return ConfidenceBins(*bin_rows(*pair, n_bins, binning)[:, 0])


def expected_calibration_error_null(
    probabilities: ArrayLike,
    *,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    size: int | None = None,
) -> float:
    """Expected ECE if every confidence were exactly right: ECE's noise level.

    The number of right answers in a bin is taken as normal, which gives a closed form.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    n_bins : int, default=15
        Number of bins.
    binning : {"width", "mass"}, default="width"
        As for `expected_calibration_error`.
    size : int, default=None
        Rows of the evaluated sample, when ECE is taken on samples of fewer rows than
        `probabilities` has; all rows by default.

    Returns
    -------
    float
        Noise level of ECE, in the unit of ECE. An ECE near it is no sign of
        miscalibration.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import expected_calibration_error_null
    >>> confidence = np.full(100, 0.8)    # 100 rows: 3 points of ECE are noise
    >>> round(expected_calibration_error_null(confidence), 3)
    0.032
    """
    confidence = _confidence(probabilities)
    size = len(confidence) if size is None else size
    if not 1 <= size <= len(confidence):
        raise ValueError(
            f"size is {size}; wanted 1..{len(confidence)}, the number of rows"
        )
    none = np.zeros(len(confidence))
    sums = bin_rows(none, confidence, n_bins, binning)[:, 0]
    return ConfidenceBins(*sums).null_error(size)


def _confidence(probabilities: Any) -> np.ndarray:
    if np.ndim(probabilities) == 1:
        return check_confidence(probabilities)
    return check_confidence(np.max(check_probabilities(probabilities), axis=1))
