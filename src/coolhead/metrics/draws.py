"""Sums over random draws of rows, of many columns at once."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array


def sums_of_draws(
    columns: np.ndarray,
    values: np.ndarray,
    n_columns: int,
    n_draws: int,
    counts: Callable[[int, int], np.ndarray],
) -> np.ndarray:
    """Sum of the values that fall into every column, on every draw.

    A draw is a vector of counts per row, and the sums are linear in it: one sparse
    matrix times a block of counts serves all columns at once.

    Parameters
    ----------
    columns : (n, m) in 0..n_columns-1: where each of a row's m values is added
    values : (n, m)
    counts : (start, stop) -> (stop - start, n) how often each row was drawn

    Returns
    -------
    (n_draws, n_columns) sums
    """
    n_rows, n_values = values.shape
    starts = np.arange(n_rows + 1) * n_values
    shape = (n_columns, n_rows)
    matrix = csc_array((values.ravel(), columns.ravel(), starts), shape=shape)
    sums = np.empty((n_draws, n_columns))
    # Few draws at a time keep the sums of all columns in the cache.
    block = int(np.clip(4_000_000 // n_rows, 1, 25))
    for start in range(0, n_draws, block):
        drawn = counts(start, min(start + block, n_draws))
        sums[start : start + block] = (matrix @ np.ascontiguousarray(drawn.T)).T
    return sums
