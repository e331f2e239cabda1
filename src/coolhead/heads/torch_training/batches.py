"""Which rows make up each training batch."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TrainingRows:
    """Rows to train on, rows to watch (may be none), and the domain of every row."""

    train: np.ndarray
    small: np.ndarray
    domains: np.ndarray


def endless_rows(rows: np.ndarray, size: int, rng: np.random.Generator) -> Iterator:
    """Yield arrays of `size` rows, going through fresh shuffles of `rows` for ever."""
    waiting = rng.permutation(rows)
    while True:
        while waiting.size < size:
            waiting = np.concatenate([waiting, rng.permutation(rows)])
        yield waiting[:size]
        waiting = waiting[size:]


def balanced_batches(
    pools: list[np.ndarray], batch_size: int, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yield lists of row arrays, one per pool, with equal shares of `batch_size`.

    Parameters
    ----------
    pools : list of (n_i,) int arrays
        The rows of each source domain; one pool of all rows gives plain batches.
    """
    share = max(1, batch_size // len(pools))
    streams = [endless_rows(pool, share, rng) for pool in pools]
    while True:
        yield [next(stream) for stream in streams]


def domain_pools(rows: np.ndarray, domains: np.ndarray) -> list[np.ndarray]:
    """Divide `rows` by their domain, in order of the domains' first appearance.

    Parameters
    ----------
    rows : (m,) int
    domains : (n,) array of any hashable kind
        Domain of every row of the archive, indexed by `rows`.
    """
    names = domains[rows]
    _, first, codes = np.unique(names, return_index=True, return_inverse=True)
    return [rows[codes == code] for code in np.argsort(first)]
