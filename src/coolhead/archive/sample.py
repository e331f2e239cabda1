"""Some rows of a file of any size, drawn at random while it goes past."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from coolhead.archive.stream import Block

MOST_ROWS = 100_000
MOST_BYTES = 2**27
LEAST_ROWS = 2_000


class Sample(NamedTuple):
    """Rows of a file: their numbers there, ascending, and of how many they are."""

    rows: np.ndarray
    logits: np.ndarray
    features: np.ndarray | None
    n_rows: int


def sample_length(bytes_per_row: int) -> int:
    """How many rows to keep: no more than tell enough, no more than is affordable."""
    affordable = max(LEAST_ROWS, MOST_BYTES // max(bytes_per_row, 1))
    return min(MOST_ROWS, affordable)


class _Part(NamedTuple):
    """Rows that stay so far, each with the number it drew."""

    drawn: np.ndarray
    rows: np.ndarray
    logits: np.ndarray
    features: np.ndarray | None

    def take(self, mask: np.ndarray) -> "_Part":
        return _Part(*(None if part is None else part[mask] for part in self))


def sample_blocks(
    blocks: Iterable[Block], most: int, keep: Sequence[int] = ()
) -> Sample:
    """At most `most` random rows of the blocks, and those of `keep` in any case.

    Every row draws a number and the smallest stay: the same rows for the same file,
    however it is cut into blocks, with at most twice as many in memory, and a block.
    """
    generator = np.random.default_rng(0)
    kept: list[_Part] = []
    limit, n_rows = np.inf, 0
    for block in blocks:
        rows = block.start + np.arange(len(block))
        drawn = generator.random(len(block))
        drawn[np.isin(rows, keep)] = -1.0
        part = _Part(drawn, rows, block.logits, block.features)
        kept.append(part.take(drawn < limit))
        n_rows += len(block)
        if sum(len(part.rows) for part in kept) > 2 * most + len(keep):
            kept, limit = _smallest(kept, most)
    kept, _ = _smallest(kept, most)
    columns = list(zip(*kept, strict=True))[1:]
    return Sample(
        *(None if part[0] is None else np.concatenate(part) for part in columns), n_rows
    )


def _smallest(kept: list[_Part], most: int) -> tuple[list[_Part], float]:
    """Those with the `most` smallest numbers, and what a number must be below."""
    drawn = np.concatenate([part.drawn for part in kept])
    count = most + int((drawn < 0).sum())
    if len(drawn) <= count:
        return kept, np.inf
    limit = float(np.partition(drawn, count)[count])
    return [part.take(part.drawn < limit) for part in kept], limit
