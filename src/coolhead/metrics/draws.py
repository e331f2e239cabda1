"""Random draws of rows on several threads, and sums over them.

Every block of draws has a generator of its own, so that the draws do not depend on the
number of threads; and the first draws are the same however many follow.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from coolhead.numerics.threads import each_turn, thread_count

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
    n_numbers : in each draw: many are shared out among threads.
    seed : of a generator, its next number is taken.
    at_once : draws in a block.
    scratch : makes the memory that each thread writes to.
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
    columns : (n, m) in 0..n_columns-1: where each of a row's m values is added
    values : (n, m)
    count : writes how often each draw of a block drew each row, (draws, n)
    seed : of the generators

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
