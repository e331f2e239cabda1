"""Binned calibration errors: expected, maximum, classwise, debiased, signed."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from coolhead.metrics.bins import Binning, bin_index, equal_width_index, gap_sums
from coolhead.metrics.intervals import check_count
from coolhead.metrics.vectors import correctness_and_confidence
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice, check_labels
from coolhead.numerics.class_names import column_names
from coolhead.numerics.probabilities import check_probabilities


def expected_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = 15,
    binning: Binning = "width",
) -> float:
    """Mean absolute gap between accuracy and confidence over bins (ECE).

    ECE = sum_m (n_m / n) |accuracy_m - confidence_m| over bins ((m-1)/M, m/M], the
    first of which also holds 0.

    Parameters
    ----------
    labels : (n,) class indices; or correctness, when `probabilities` is (n,)
    probabilities : (n, k) probabilities; or (n,) confidence of the predicted class
    n_bins : number of bins M
    binning : "width" for bins of equal width, "mass" for equally filled bins

    Returns
    -------
    ECE in [0, 1]. It is biased upward: compare `expected_calibration_error_null`.

    Examples
    --------
    >>> expected_calibration_error([1, 1, 0, 1], [0.875, 0.875, 0.625, 0.625])
    0.125
    """
    correct, confidence = correctness_and_confidence(labels, probabilities)
    sums = gap_sums(correct, confidence, n_bins, binning)
    return float(np.abs(sums).sum() / len(confidence))


def maximum_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = 15,
    binning: Binning = "width",
) -> float:
    """Largest absolute gap of any non-empty bin (MCE); arguments as for ECE.

    Examples
    --------
    >>> from coolhead.metrics import maximum_calibration_error
    >>> maximum_calibration_error([1, 1, 0, 1], [0.875, 0.875, 0.75, 0.75], n_bins=4)
    0.25
    """
    correct, confidence = correctness_and_confidence(labels, probabilities)
    index = bin_index(confidence, n_bins, binning)
    count = np.bincount(index, minlength=n_bins)
    sums = np.bincount(index, correct - confidence, n_bins)
    return float((np.abs(sums)[count > 0] / count[count > 0]).max())


def signed_calibration_gap(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean confidence minus accuracy: positive means over-confident.

    Examples
    --------
    >>> from coolhead.metrics import signed_calibration_gap
    >>> signed_calibration_gap([1, 0], [0.75, 0.75])    # sure of 75 %, right in 50 %
    0.25
    """
    correct, confidence = correctness_and_confidence(labels, probabilities)
    return float(confidence.mean() - correct.mean())


def classwise_calibration_error(
    labels: ArrayLike, probabilities: ArrayLike, *, n_bins: int = 15
) -> float:
    """ECE of every class's probability against its frequency, averaged over classes.

    Parameters
    ----------
    labels : (n,) class indices
    probabilities : (n, k)
    n_bins : number of equal-width bins for each class

    Examples
    --------
    >>> from coolhead.metrics import classwise_calibration_error
    >>> round(classwise_calibration_error([0, 1], [[0.75, 0.25], [0.75, 0.25]]), 3)
    0.25
    """
    n_bins, names = check_count(n_bins, "n_bins"), column_names(probabilities)
    probabilities = check_probabilities(probabilities)
    n_rows, n_classes = probabilities.shape
    labels = check_labels(labels, n_classes, n_rows, names)
    offset = np.arange(n_classes) * n_bins
    sums = np.zeros(n_classes * n_bins)
    for rows in row_blocks(n_rows, n_classes):
        block = np.minimum(probabilities[rows], 1).astype(np.float64, copy=False)
        key = equal_width_index(block.ravel(), n_bins).reshape(block.shape) + offset
        own = key[np.arange(len(block)), labels[rows]]
        sums -= np.bincount(key.ravel(), block.ravel(), len(sums))
        sums += np.bincount(own, minlength=len(sums))
    return float(np.abs(sums).sum() / (n_rows * n_classes))


def debiased_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = 15,
    binning: Binning = "width",
    norm: Literal[1, 2] = 1,
) -> float:
    """Calibration error less the part that is noise of the bins' accuracies.

    norm=1 is on the scale of ECE: twice the plug-in value minus its expectation
    when the accuracies are redrawn from their normal approximation (in closed form,
    so nothing is random). It may be slightly negative, which keeps averages honest.
    norm=2 is the root of the debiased mean squared gap, cut off at zero.

    Bins with fewer than two rows say nothing about their noise and are left out.
    The other arguments are those of `expected_calibration_error`.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import debiased_calibration_error
    >>> right, sure = np.arange(100) % 4 > 0, np.full(100, 0.95)    # 75 % right
    >>> round(debiased_calibration_error(right, sure), 2)
    0.2
    """
    check_choice(norm, "norm", 1, 2)
    correct, confidence = correctness_and_confidence(labels, probabilities)
    index = bin_index(confidence, n_bins, binning)
    count = np.bincount(index, minlength=n_bins)
    kept = count > 1
    count = count[kept]
    gap = np.bincount(index, correct - confidence, n_bins)[kept] / count
    accuracy = np.bincount(index, correct, n_bins)[kept] / count
    weight = count / len(confidence)
    noise = accuracy * (1 - accuracy)
    if norm == 2:
        squared = weight @ (gap**2 - noise / (count - 1))
        return float(np.sqrt(max(squared, 0.0)))
    redrawn = folded_normal_mean(gap, np.sqrt(noise / count))
    return float(weight @ (2 * np.abs(gap) - redrawn))


def folded_normal_mean(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """E|X| of X normal with these means and standard deviations (zero allowed)."""
    ratio = np.abs(mean) / np.where(deviation > 0, deviation, 1.0)
    spread = deviation * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    inside = np.where(deviation > 0, 1 - 2 * ndtr(-ratio), 1.0)
    return spread + np.abs(mean) * inside
