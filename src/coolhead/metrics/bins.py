"""Which bin a confidence falls into, and the sums inside the bins."""

from functools import cache
from typing import Literal

import numpy as np

from coolhead.metrics.intervals import check_count
from coolhead.numerics.checks import check_choice

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
    sums = np.zeros((n_bins + 1, MOST_BINS + 1), complex)
    np.add.at(sums.reshape(-1), bins, gaps.view(complex))
    sums = sums[:, : n_bins + 1]
    total = np.real(sums).sum(axis=0) + np.imag(sums).sum(axis=1)
    total[1] += total[0]
    return total[1:]


def _bin_numbers(confidence: np.ndarray, n_bins: int) -> np.ndarray:
    """Which bin, counted from one, as floats; zero for a confidence of zero."""
    numbers = confidence * n_bins
    np.ceil(numbers, out=numbers)
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
