"""Row blocks small enough to stay in the cache."""

from collections.abc import Iterator

import numpy as np

ELEMENTS_PER_BLOCK = 2**17


def row_blocks(
    n_rows: int, n_columns: int, elements: int = ELEMENTS_PER_BLOCK
) -> Iterator[slice]:
    """Slices over `n_rows` rows of about so many elements each."""
    size = max(1, elements // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def block_buffer(logits: np.ndarray, n_rows: int | None = None) -> np.ndarray:
    """An empty array for a block of `logits`, of so many rows, to compute in."""
    length, n_columns = logits.shape
    rows = min(length, max(1, ELEMENTS_PER_BLOCK // n_columns))
    return np.empty((n_rows or rows, n_columns), computing_dtype(logits))


def computing_dtype(logits: np.ndarray) -> type[np.floating]:
    """float32 for float16 and float32 logits, float64 for everything else."""
    return np.float32 if logits.dtype in (np.float16, np.float32) else np.float64


def row_sums(block: np.ndarray) -> np.ndarray:
    """Sum of each row, in the block's own precision.

    Not by BLAS, here and in `row_dots`: how it sums depends on its number of threads.
    """
    return np.einsum("ij->i", block)


def row_dots(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Inner product of each two rows, in the blocks' own precision."""
    return np.einsum("ij,ij->i", first, second)
