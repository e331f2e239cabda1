"""Which bin a confidence falls into, and the sums inside the bins."""

from typing import Literal

import numpy as np

from coolhead.metrics.intervals import check_count
from coolhead.numerics.checks import check_choice

Binning = Literal["width", "mass"]

# Large enough for few Python steps, small enough for the second-level cache.
ROWS_PER_BLOCK = 2**15


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
    """The same as searching the edges m / n_bins, several times faster.

    Rounding can carry `confidence * n_bins` across an integer only within a few
    units in the last place, so only rows that close to an edge are compared with it.
    """
    scaled = confidence * n_bins
    index = scaled.astype(np.intp)
    np.subtract(scaled, np.rint(scaled), out=scaled)
    distance = np.abs(scaled, out=scaled)
    reach = 8 * n_bins * np.finfo(np.float64).eps
    if distance.min() < reach:
        close = np.flatnonzero(distance < reach)
        edge = np.rint(confidence[close] * n_bins).astype(np.intp)
        at_or_below = confidence[close] <= edge / n_bins
        index[close] = np.maximum(edge - at_or_below, 0)
    return index


def gap_sums(
    correct: np.ndarray, confidence: np.ndarray, n_bins: int, binning: Binning
) -> np.ndarray:
    """Sum of correctness minus confidence in every bin, (n_bins,)."""
    n_bins = check_count(n_bins, "n_bins")
    if binning != "width":
        index = bin_index(confidence, n_bins, binning)
        return np.bincount(index, correct - confidence, n_bins)
    sums = np.zeros(n_bins)
    for start in range(0, len(confidence), ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        block = confidence[rows]
        index = equal_width_index(block, n_bins)
        sums += np.bincount(index, correct[rows] - block, n_bins)
    return sums
