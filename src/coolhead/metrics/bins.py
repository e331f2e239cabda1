"""Intervals, and rows sorted into bins of confidence or of each class's probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import ndtr

from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice, check_probabilities, readable
from coolhead.numerics.classes import match_rows


@dataclass(frozen=True)
class Interval:
    """A number and its limits.

    Attributes
    ----------
    estimate, low, high : float

    Examples
    --------
    >>> from coolhead.metrics import Interval
    >>> Interval(0.05, 0.03, 0.08).high
    0.08
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class SubsampledScore:
    """A score on all rows and on many subsamples of them.

    The spread tells how much the score moves between subsamples of this one finite
    set; it shrinks to zero as they grow to the whole set. It is not a confidence
    interval for the domain the rows come from: see `paired_bootstrap` for that.

    Attributes
    ----------
    estimate : float
        Score on all rows.
    values : ndarray of shape (n_draws,)
        Score on each subsample.
    level : float
        Share of the values between `low` and `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import SubsampledScore
    >>> score = SubsampledScore(0.05, np.linspace(0.03, 0.07, 101))
    >>> round(score.low, 3), round(score.high, 3)
    (0.031, 0.069)
    """

    estimate: float
    values: np.ndarray
    level: float = 0.95

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def standard_deviation(self) -> float:
        # Measured from one of the values, so that equal values give exactly zero.
        return float((self.values - self.values[0]).std())

    @property
    def low(self) -> float:
        """Lower percentile, 2.5 % at the default level."""
        return float(np.quantile(self.values, (1 - self.level) / 2))

    @property
    def high(self) -> float:
        """Upper percentile, 97.5 % at the default level."""
        return float(np.quantile(self.values, (1 + self.level) / 2))


# Bins of a calibration error where nothing else is asked for.
N_BINS = 15


def check_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; wanted a share between 0 and 1, e.g. 0.95")
    return level


def check_count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} is {value!r}; wanted an integer >= 1")
    return int(value)


# A softmax in float32 may exceed one by its rounding error, never by more.
ROUNDING = 1e-6


def correctness_and_confidence(
    labels: ArrayLike, probabilities: ArrayLike, classes: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return what every top-label metric works on.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness (bool or 0/1) beside a vector of confidences.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, or the confidence of the predicted class. The number of
        dimensions says which of the two pairs is meant.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    correct : ndarray of shape (n_samples,)
        Zeros and ones of type bool, integer or float.
    confidence : ndarray of shape (n_samples,)
        Float64 values in [0, 1].
    """
    if np.ndim(probabilities) != 1:
        found = match_rows(probabilities, labels, classes, check_probabilities)
        return _top_label(*found[:2])
    confidence = check_confidence(probabilities)
    return check_correctness(labels, len(confidence)), confidence


def occurrence_and_probability(
    labels: ArrayLike, probabilities: ArrayLike, classes: Any, of: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each row is of one class, and its probability of that class.

    Parameters
    ----------
    labels, probabilities, classes
        As for `correctness_and_confidence`, with a probability of every class.
    of : str or int
        Name or number of the class.
    """
    array, codes, names = match_rows(
        probabilities, labels, classes, check_probabilities
    )
    known = [str(name) for name in names or range(array.shape[1])]
    if str(of) not in known:
        listed = ", ".join(known[:10])
        raise ValueError(f"of is {of!r}, which is no class; wanted one of {listed}")
    number = known.index(str(of))
    return codes == number, array[:, number].astype(np.float64)


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
    probabilities: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    correct = np.empty(len(labels), bool)
    confidence = np.empty(len(labels))
    for rows in row_blocks(*probabilities.shape):
        block = probabilities[rows]
        top = block.argmax(axis=1)
        correct[rows] = top == labels[rows]
        confidence[rows] = block[np.arange(len(block)), top]
    return correct, np.minimum(confidence, 1.0, out=confidence)


Binning = Literal["width", "mass"]

# Large enough for few Python steps, small enough for the last-level cache.
ROWS_PER_BLOCK = 2**17

# The number of a bin fits into a byte.
MOST_BINS = 255


def bin_index(confidence: np.ndarray, n_bins: int, binning: Binning) -> np.ndarray:
    """Bin of every row, (n,) integers 0..n_bins-1; bins are closed on the right."""
    n_bins = check_count(n_bins, "n_bins")
    if binning == "width":
        return equal_width_index(confidence, n_bins)
    edges = bin_edges(confidence, n_bins, binning)
    return np.searchsorted(edges[1:-1], confidence, side="left")


def bin_edges(confidence: np.ndarray, n_bins: int, binning: Binning) -> np.ndarray:
    """Edges of the bins, (n_bins + 1,), from 0 to 1.

    Equal mass: edges at the observed quantiles. Equal confidences share a bin, so
    the result does not depend on the order of the rows; with many ties some bins
    are empty.
    """
    n_bins = check_count(n_bins, "n_bins")
    check_choice(binning, "binning", "width", "mass")
    if binning == "width":
        return np.arange(n_bins + 1) / n_bins
    last = -(-np.arange(1, n_bins) * len(confidence) // n_bins) - 1
    inner = np.sort(confidence)[np.maximum(last, 0)]
    return np.concatenate([[0.0], inner, [1.0]])


def equal_width_index(confidence: np.ndarray, n_bins: int) -> np.ndarray:
    """The same as searching the edges m / n_bins, several times faster."""
    numbers = np.maximum(_bin_numbers(confidence, n_bins), 1)
    return numbers.astype(np.intp) - 1


def gap_sums(
    correct: np.ndarray, confidence: np.ndarray, n_bins: int, binning: Binning
) -> np.ndarray:
    """Sum of correctness minus confidence in every bin, (n_bins,)."""
    n_bins = check_count(n_bins, "n_bins")
    if binning != "width" or n_bins > MOST_BINS:
        index = bin_index(confidence, n_bins, binning)
        return np.bincount(index, correct - confidence, n_bins)
    sums = np.zeros(n_bins)
    for start in range(0, len(confidence), ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        sums += _sums_of_pairs(correct[rows], confidence[rows], n_bins)
    return sums


def _sums_of_pairs(
    correct: np.ndarray, confidence: np.ndarray, n_bins: int
) -> np.ndarray:
    """`gap_sums` of equal width, two rows in one step.

    The bins of two rows, a byte each, are read as one number, their gaps as one complex
    number: half as many additions, and fewer that wait for the one before.
    """
    if len(confidence) % 2:  # the last row's partner has no gap
        correct, confidence = np.append(correct, 0), np.append(confidence, 0.0)
    numbers = _bin_numbers(confidence, n_bins)
    bins = numbers.astype(np.uint8).view("<u2").astype(np.intp)
    gaps = np.subtract(correct, confidence, out=numbers)
    sums = np.zeros((n_bins + 1, MOST_BINS + 1, 2))
    np.add.at(sums.view(complex).reshape(-1), bins, gaps.view(complex))
    first, second = np.moveaxis(sums[:, : n_bins + 1], 2, 0)
    total = first.sum(axis=0) + second.sum(axis=1)
    total[1] += total[0]
    return total[1:]


def _bin_numbers(confidence: np.ndarray, n_bins: int) -> np.ndarray:
    """Which bin, counted from one, as floats; zero for a confidence of zero."""
    numbers = confidence * n_bins
    np.ceil(numbers, out=numbers)
    if n_bins > MOST_BINS:  # Rounding may carry thousands across: look at every edge.
        numbers += confidence > numbers / n_bins
        numbers -= confidence <= (numbers - 1) / n_bins
        return numbers
    for value, number in _rounded_across(n_bins):
        numbers[confidence == value] = number
    return numbers


@cache
def _rounded_across(n_bins: int) -> list[tuple[float, int]]:
    """The confidences whose product with `n_bins` is rounded into another bin.

    Rounding keeps the order, so they are next to an edge: a handful of numbers, for 15
    bins a single one.
    """
    number = np.arange(1, n_bins)
    edges = number / n_bins
    found = []
    for units in range(-4, 5):
        near = (edges.view(np.int64) + units).view(np.float64)
        right = number + (near > edges)
        wrong = np.ceil(near * n_bins) != right
        found += zip(near[wrong].tolist(), right[wrong].tolist(), strict=True)
    return found


@dataclass(frozen=True)
class ConfidenceBins:
    """Sums over the rows in each bin of confidence; those of two blocks add up.

    Attributes
    ----------
    count, correct, confidence : ndarray of shape (n_bins,)
        Rows, right answers among them, and the sum of their confidences.
    variance : ndarray of shape (n_bins,)
        Sum of confidence * (1 - confidence).
    """

    count: np.ndarray
    correct: np.ndarray
    confidence: np.ndarray
    variance: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """Right answers minus the number that the confidences promise, (n_bins,)."""
        return self.correct - self.confidence

    @property
    def error(self) -> float:
        """Expected calibration error."""
        return float(np.abs(self.gap).sum() / self.count.sum())

    @property
    def maximum_error(self) -> float:
        """Largest gap between accuracy and confidence of any bin with rows."""
        filled = self.count > 0
        return float((np.abs(self.gap)[filled] / self.count[filled]).max())

    def debiased_error(self, norm: Literal[1, 2] = 1) -> float:
        """Calibration error less the part that is noise of the bins' accuracies."""
        kept = self.count > 1
        count = self.count[kept]
        gap, accuracy = self.gap[kept] / count, self.correct[kept] / count
        weight, noise = count / self.count.sum(), accuracy * (1 - accuracy)
        if norm == 2:
            squared = weight @ (gap**2 - noise / (count - 1))
            return float(np.sqrt(max(squared, 0.0)))
        redrawn = folded_normal_mean(gap, np.sqrt(noise / count))
        return float(weight @ (2 * np.abs(gap) - redrawn))

    def null_error(self, size: int | None = None) -> float:
        """Expected error of `size` such rows if every confidence were exactly right."""
        n_rows = self.count.sum()
        scale = np.sqrt(2 / (np.pi * (size or n_rows) * n_rows))
        return float(np.sqrt(self.variance).sum() * scale)


def bin_rows(
    correct: np.ndarray,
    confidence: np.ndarray,
    n_bins: int,
    binning: Binning = "width",
    codes: np.ndarray | int = 0,
    n_groups: int = 1,
) -> np.ndarray:
    """Return the sums of `ConfidenceBins`, (4, n_groups, n_bins).

    Parameters
    ----------
    correct, confidence : ndarray of shape (n_samples,)
    n_bins : int
    binning : {"width", "mass"}, default="width"
    codes : ndarray of shape (n_samples,), default=0
        Group of each row.
    n_groups : int, default=1
    """
    place = codes * n_bins + bin_index(confidence, n_bins, binning)
    columns = (None, correct, confidence, confidence * (1 - confidence))
    sums = [np.bincount(place, column, n_groups * n_bins) for column in columns]
    return np.reshape(sums, (4, n_groups, n_bins))


def folded_normal_mean(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """E|X| of X normal with these means and standard deviations (zero allowed)."""
    ratio = np.abs(mean) / np.where(deviation > 0, deviation, 1.0)
    spread = deviation * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    inside = np.where(deviation > 0, 1 - 2 * ndtr(-ratio), 1.0)
    return spread + np.abs(mean) * inside


class ClassBins:
    """How often each class occurs, minus what its probabilities promise, by bin.

    Parameters
    ----------
    labels, codes : ndarray of shape (n_samples,)
        Class and group of each row.
    n_groups, n_classes, n_bins : int

    Attributes
    ----------
    gaps : ndarray of shape (n_groups, n_classes, n_bins)
    """

    def __init__(
        self,
        labels: np.ndarray,
        codes: np.ndarray,
        n_groups: int,
        n_classes: int,
        n_bins: int,
    ):
        self.labels, self.codes = labels, codes
        self.gaps = np.zeros((n_groups, n_classes, n_bins))
        self._lock = Lock()

    def add(self, rows: slice, powers: np.ndarray, total: np.ndarray) -> None:
        """Count a block of probabilities powers / total[:, None], from any thread.

        The probabilities of a row sum to one, so that few lie above the first bin:
        all are counted there in one product, and these few are moved.
        """
        n_groups, n_classes, n_bins = self.gaps.shape
        labels, codes = self.labels[rows], self.codes[rows]
        each = np.arange(len(labels))
        weights = csr_array((1 / total, (codes, each)), (n_groups, len(labels)))
        first = weights @ powers
        row, column = np.nonzero(powers > ((1 - ROUNDING) / n_bins * total)[:, None])
        moved = np.minimum(powers[row, column] / total[row], 1).astype(np.float64)
        own = np.minimum(powers[each, labels] / total, 1).astype(np.float64)
        start = (codes[row] * n_classes + column) * n_bins
        right = (codes * n_classes + labels) * n_bins + equal_width_index(own, n_bins)
        flat = self.gaps.reshape(-1)
        with self._lock:
            self.gaps[:, :, 0] -= first
            np.add.at(flat, start, moved)
            np.subtract.at(flat, start + equal_width_index(moved, n_bins), moved)
            np.add.at(flat, right, 1.0)
