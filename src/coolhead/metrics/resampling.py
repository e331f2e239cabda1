"""Random draws of rows on several threads, and sums over them.

Every block of draws has a generator of its own, so that the draws do not depend on the
number of threads; and the first draws are the same however many follow.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array

from coolhead.metrics.bins import (
    N_BINS,
    Binning,
    SubsampledScore,
    bin_index,
    check_count,
    check_level,
    check_rows,
    correctness_and_confidence,
)
from coolhead.numerics.blocks import each_turn, thread_count

DRAWS_PER_BLOCK = 25

# Draws of fewer numbers are steps so short that threads wait for each other.
WORTHWHILE = 2**13

Generator = np.random.Generator


def each_draw_block(
    n_draws: int,
    n_numbers: int,
    seed: int,
    work: Callable[[slice, Generator, Any], None],
    *,
    at_once: int = DRAWS_PER_BLOCK,
    scratch: Callable[[], Any] = lambda: None,
) -> None:
    """Call `work(draws, generator, scratch())` for every block of `n_draws`.

    Parameters
    ----------
    n_numbers : int
        Numbers in each draw: many are distributed over threads.
    seed : int
        Or a generator, whose next number is taken.
    at_once : int
        Draws in a block.
    scratch : callable
        Makes the memory that each thread writes to.
    """
    if isinstance(seed, np.random.RandomState):  # NumPy 2.0 makes no generator of it
        seed = int(seed.randint(2**62, dtype=np.int64))
    if isinstance(seed, Generator | np.random.SeedSequence):
        seed = int(np.random.default_rng(seed).integers(2**63))

    def turn(number: int, own: Any) -> None:
        draws = slice(number * at_once, min((number + 1) * at_once, n_draws))
        sequence = np.random.SeedSequence(seed, spawn_key=(draws.start,))
        work(draws, np.random.default_rng(sequence), own)

    enough = n_numbers >= WORTHWHILE
    threads = thread_count(n_draws * n_numbers) if enough else 1
    each_turn(-(-n_draws // at_once), turn, threads, scratch)


def sums_of_draws(
    columns: np.ndarray,
    values: np.ndarray,
    n_columns: int,
    n_draws: int,
    count: Callable[[slice, Generator, np.ndarray], None],
    seed: int = 0,
) -> np.ndarray:
    """Sum of the values that fall into every column, on every draw.

    A draw is a vector of counts per row, and the sums are linear in it: one sparse
    matrix times a block of counts serves all columns at once.

    Parameters
    ----------
    columns : ndarray of shape (n_samples, n_values)
        From 0 to n_columns - 1: where each of a row's values is added.
    values : ndarray of shape (n_samples, n_values)
    n_columns, n_draws : int
    count : callable
        Writes how often each draw of a block drew each row, (n_block, n_samples).
    seed : int, default=0

    Returns
    -------
    ndarray of shape (n_draws, n_columns)
    """
    n_rows, n_values = values.shape
    starts = np.arange(n_rows + 1) * n_values
    shape = (n_columns, n_rows)
    matrix = csc_array((values.ravel(), columns.ravel(), starts), shape=shape)
    sums = np.empty((n_draws, n_columns))

    # Few draws at a time keep the sums of all columns in the cache.
    at_once = int(np.clip(4_000_000 // n_rows, 1, DRAWS_PER_BLOCK))

    def add(draws: slice, generator: Generator, memory: np.ndarray) -> None:
        by_draw, by_row = memory[:, : (draws.stop - draws.start) * n_rows]
        counts = by_draw.reshape(-1, n_rows)
        count(draws, generator, counts)
        turned = by_row.reshape(n_rows, -1)
        turned[:] = counts.T
        sums[draws] = (matrix @ turned).T

    each_draw_block(
        n_draws,
        n_rows,
        seed,
        add,
        at_once=at_once,
        scratch=lambda: np.empty((2, at_once * n_rows)),
    )
    return sums


# Draws of fewer rows than one in this many do without a look at all rows.
FEW = 8


@dataclass(frozen=True)
class Subsamples:
    """Row numbers of subsets drawn without replacement.

    Attributes
    ----------
    n_rows : int
        Rows of the set they were drawn from.
    requested_size : int
        Rows per subset as asked for.
    indices : ndarray of shape (n_draws, size)
        Row numbers of type int32.

    Examples
    --------
    >>> from coolhead.metrics import draw_subsamples
    >>> draws = draw_subsamples(8, 4, n_draws=3)
    >>> draws.n_rows, draws.indices.shape
    (8, (3, 4))
    """

    n_rows: int
    requested_size: int
    indices: np.ndarray

    @property
    def n_draws(self) -> int:
        return self.indices.shape[0]

    @property
    def size(self) -> int:
        """Rows in each subset; below `requested_size` if there were too few rows."""
        return self.indices.shape[1]


def draw_subsamples(
    n_rows: int, size: int, n_draws: int = 1000, random_state: int = 0
) -> Subsamples:
    """Draw subsets of rows without replacement, once for all methods.

    Where there are fewer than `size` rows, three quarters of them are drawn, with a
    warning; the result's `size` says so.

    Parameters
    ----------
    n_rows : int
        Rows to draw from.
    size : int
        Rows in each subset.
    n_draws : int, default=1000
        Number of subsets.
    random_state : int, default=0
        Seed of the subsets.

    Returns
    -------
    Subsamples

    Examples
    --------
    >>> draw_subsamples(100, 10, n_draws=5).indices.shape
    (5, 10)
    """
    n_rows, requested = check_count(n_rows, "n_rows"), check_count(size, "size")
    size = requested
    if n_rows < requested:
        size = max(1, 3 * n_rows // 4)
        warnings.warn(
            f"size is {requested} but there are only {n_rows} rows; drawing {size} of "
            "them, three quarters",
            UserWarning,
            stacklevel=2,
        )
    indices = np.empty((check_count(n_draws, "n_draws"), size), np.int32)
    if size == n_rows:
        # Always in the same order, so that every draw gives the same sum exactly.
        indices[:] = np.arange(n_rows)
        return Subsamples(n_rows, requested, indices)

    def choose(draws: slice, generator: Generator, _: None) -> None:
        for draw in indices[draws]:
            draw[:] = generator.choice(n_rows, size, replace=False, shuffle=False)

    each_draw_block(len(indices), size, random_state, choose)
    return Subsamples(n_rows, requested, indices)


def subsample_ece(
    labels: ArrayLike,
    probabilities: ArrayLike,
    draws: Subsamples,
    *,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    level: float = 0.95,
    classes: Any = None,
) -> SubsampledScore:
    """ECE on every subset of `draws`.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    draws : Subsamples
        From `draw_subsamples`; the same object for every method.
    n_bins : int, default=15
        Number of bins.
    binning : {"width", "mass"}, default="width"
        With "mass", the edges are those of the whole set.
    level : float, default=0.95
        Share of the subsets' values between `low` and `high` of the result.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    SubsampledScore

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import draw_subsamples, subsample_ece
    >>> right, confidence = np.arange(200) % 4 > 0, np.full(200, 0.95)
    >>> score = subsample_ece(right, confidence, draw_subsamples(200, 50, n_draws=100))
    >>> round(score.estimate, 2), score.low < 0.2 < score.high
    (0.2, True)
    """
    pair = correctness_and_confidence(labels, probabilities, classes)
    (score,) = subsample_eces([pair], draws, n_bins, binning, level)
    return score


def subsample_eces(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    draws: Subsamples,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    level: float = 0.95,
) -> list[SubsampledScore]:
    """`subsample_ece` of several methods' correctness and confidence in one go."""
    check_level(level)
    for correct, _ in pairs:
        _check_draws(draws, len(correct))
    index = [bin_index(confidence, n_bins, binning) for _, confidence in pairs]
    gap = [correct - confidence for correct, confidence in pairs]
    sums = _gap_sums_of_draws(index, gap, n_bins, draws)
    values = np.abs(sums).sum(axis=2) / draws.size
    estimates = [
        np.abs(np.bincount(i, g)).sum() / draws.n_rows
        for i, g in zip(index, gap, strict=True)
    ]
    return [
        SubsampledScore(float(estimate), own, level)
        for estimate, own in zip(estimates, values.T, strict=True)
    ]


def subsample_mean(
    scores: Any, draws: Subsamples, *, level: float = 0.95
) -> SubsampledScore:
    """Mean of a score per row on every subset: NLL, Brier, accuracy, gain.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        One number per row; for a gain, the difference of two scores.
    draws : Subsamples
        From `draw_subsamples`.
    level : float, default=0.95
        Share of the subsets' values between `low` and `high` of the result.

    Returns
    -------
    SubsampledScore

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import draw_subsamples, subsample_mean
    >>> right = np.arange(200) % 4 > 0
    >>> score = subsample_mean(right, draw_subsamples(200, 50, n_draws=100))
    >>> score.estimate, score.low < 0.75 < score.high
    (0.75, True)
    """
    scores = check_rows(scores, "scores")
    _check_draws(draws, len(scores))
    means = [scores.take(draw, mode="clip").mean() for draw in draws.indices]
    return SubsampledScore(float(scores.mean()), np.array(means), check_level(level))


def _gap_sums_of_draws(
    index: list[np.ndarray], gap: list[np.ndarray], n_bins: int, draws: Subsamples
) -> np.ndarray:
    """Sum of the gaps in every bin of every draw, (n_draws, n_methods, n_bins)."""
    n_methods = len(gap)
    columns = np.stack(index, axis=1) + np.arange(n_methods) * n_bins
    values, n_columns = np.stack(gap, axis=1), n_methods * n_bins

    def count(block: slice, _: Generator, counts: np.ndarray) -> None:
        counts[:] = 0
        np.put_along_axis(counts, draws.indices[block].astype(np.intp), 1, axis=1)

    def pick(block: slice, _: Generator, __: None) -> None:
        for number in range(block.start, block.stop):
            rows = draws.indices[number]
            picked = columns[rows].ravel(), values[rows].ravel()
            sums[number] = np.bincount(*picked, n_columns)

    if draws.n_rows > FEW * draws.size:
        sums = np.empty((draws.n_draws, n_columns))
        each_draw_block(draws.n_draws, draws.size * n_methods, 0, pick)
    else:
        sums = sums_of_draws(columns, values, n_columns, draws.n_draws, count)
    return sums.reshape(draws.n_draws, n_methods, n_bins)


def _check_draws(draws: Subsamples, n_rows: int) -> None:
    if draws.n_rows != n_rows:
        raise ValueError(
            f"draws were made from {draws.n_rows} rows, the data has {n_rows}; "
            "wanted the same"
        )
