"""Binned calibration errors: expected, maximum, classwise, debiased, signed."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.bins import (
    N_BINS,
    Binning,
    ClassBins,
    ConfidenceBins,
    bin_index,
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
    binning : {"width", "mass"}, default="width"
        Bins of equal width, or equally filled bins.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
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
    """Largest absolute gap of any non-empty bin (MCE); arguments as for ECE.

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

    Arguments as for `expected_calibration_error`.

    Examples
    --------
    >>> from coolhead.metrics import signed_calibration_gap
    >>> signed_calibration_gap([1, 0], [0.75, 0.75])    # sure of 75 %, right in 50 %
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
    probabilities : array-like of shape (n_samples, n_classes)
    n_bins : int, default=15
        Number of equal-width bins for each class.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

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
    method: Literal["normal", "simulation"] = "normal",
    n_draws: int = 1000,
    random_state: int = 0,
) -> float:
    """Expected ECE if every confidence were exactly right: ECE's noise level.

    Parameters
    ----------
    probabilities : (n, k) probabilities, or (n,) confidence of the predicted class
    n_bins, binning : as for `expected_calibration_error`
    size : rows of the evaluated sample, when ECE is taken on samples of fewer rows
        than `probabilities` has; all rows by default
    method : "normal" takes the number of right answers in a bin as normal, a closed
        form; "simulation" draws the right answers `n_draws` times
    n_draws, random_state : used by "simulation" only

    Returns
    -------
    Null level of ECE, in the unit of ECE. An ECE near it is no sign of miscalibration.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import expected_calibration_error_null
    >>> sure = np.full(100, 0.8)    # 100 rows: 3 points of ECE are noise
    >>> round(expected_calibration_error_null(sure), 3)
    0.032
    """
    confidence = _confidence(probabilities)
    size = len(confidence) if size is None else size
    if not 1 <= size <= len(confidence):
        raise ValueError(
            f"size is {size}; wanted 1..{len(confidence)}, the number of rows"
        )
    check_choice(method, "method", "normal", "simulation")
    if method == "simulation":
        index = bin_index(confidence, n_bins, binning)
        return _simulate(confidence, index, n_bins, size, n_draws, random_state)
    none = np.zeros(len(confidence))
    return ConfidenceBins(
        *bin_rows(none, confidence, n_bins, binning)[:, 0]
    ).null_error(size)


def _confidence(probabilities: Any) -> np.ndarray:
    if np.ndim(probabilities) == 1:
        return check_confidence(probabilities)
    return check_confidence(np.max(check_probabilities(probabilities), axis=1))


def _simulate(
    confidence: np.ndarray,
    index: np.ndarray,
    n_bins: int,
    size: int,
    n_draws: int,
    random_state: int,
) -> float:
    generator = np.random.default_rng(random_state)
    total = 0.0
    for _ in range(n_draws):
        correct = generator.random(len(confidence)) < confidence
        gap = correct - confidence
        rows = slice(None)
        if size < len(confidence):
            rows = generator.choice(len(confidence), size, replace=False)
        total += np.abs(np.bincount(index[rows], gap[rows], n_bins)).sum()
    return total / (n_draws * size)


GRID = np.linspace(-0.6, 1.6, 2**14)


def kernel_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    bandwidth: float | None = None,
    classes: Any = None,
) -> float:
    """Mean |confidence - accuracy(confidence)| with kernel estimates of both.

    With f the density of confidence and f1 that of the rows answered correctly,
    accuracy(c) = min(1, accuracy * f1(c) / f(c)), and the error is the integral of
    |c - accuracy(c)| f(c) over [0, 1] divided by that of f. The densities are sums
    of triweight kernels on a fine grid, the data mirrored at 0 and 1.

    Parameters
    ----------
    labels, probabilities, classes : as for `expected_calibration_error`
    bandwidth : standard deviation of the kernel; by default the standard deviation
        of the confidences answered correctly times (2 n)^(-1/5)

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import kernel_calibration_error
    >>> sure = np.linspace(0.5, 1, 400)
    >>> right = np.arange(400) % 2 == 0    # right half of the time
    >>> round(kernel_calibration_error(right, sure), 2)
    0.25
    """
    correct, confidence = correctness_and_confidence(labels, probabilities, classes)
    hits = confidence[correct.astype(bool)]
    if bandwidth is None:
        bandwidth = _default_bandwidth(hits, len(confidence))
    if not 0 < bandwidth < np.inf:
        raise ValueError(f"bandwidth is {bandwidth}; wanted a finite number > 0")
    inside = (GRID > 0) & (GRID < 1)
    points = GRID[inside]
    density = _density(confidence, bandwidth)[inside]
    hit_density = _density(hits, bandwidth)[inside] if len(hits) else 0 * density
    visible = density > 1e-6
    accuracy = np.zeros_like(points)
    share = len(hits) / len(confidence)
    np.divide(share * hit_density, density, out=accuracy, where=visible)
    error = np.abs(points - np.minimum(accuracy, 1)) * density * visible
    return float(np.trapezoid(error, points) / np.trapezoid(density, points))


def _default_bandwidth(hits: np.ndarray, n_rows: int) -> float:
    spread = float(np.std(hits)) if len(hits) else 0.0
    if spread < 1e-12:
        raise ValueError(
            "bandwidth cannot be chosen: the rows answered correctly have "
            f"{len(np.unique(hits))} distinct confidence(s), wanted at least 2; "
            "pass a number as bandwidth"
        )
    return spread * (2 * n_rows) ** -0.2


def _density(values: np.ndarray, bandwidth: float) -> np.ndarray:
    """Density of `values`, each mirrored at the nearer end of [0, 1], on the grid."""
    mirrored = np.concatenate([values, np.where(values < 0.5, -values, 2 - values)])
    step = GRID[1] - GRID[0]
    position = (mirrored - GRID[0]) / step
    left = position.astype(np.intp)
    share = position - left
    mass = np.bincount(left, 1 - share, len(GRID))
    mass += np.bincount(left + 1, share, len(GRID))
    # The triweight kernel on [-1, 1] has variance 1/9.
    reach = int(np.ceil(3 * bandwidth / step))
    offset = np.arange(-reach, reach + 1) * step / (3 * bandwidth)
    kernel = np.maximum(1 - offset**2, 0) ** 3
    kernel *= 35 / 32 / (3 * bandwidth)
    # Mirroring doubled the rows, so dividing by n gives density one inside [0, 1].
    length = len(mass) + len(kernel) - 1
    spectrum = np.fft.rfft(mass, length) * np.fft.rfft(kernel, length)
    density = np.fft.irfft(spectrum, length)[reach : reach + len(mass)]
    return np.maximum(density, 0) / len(values)
