"""The Brier score along a whole range of temperatures, in one pass."""

import numpy as np

from coolhead.numerics.blocks import block_buffer, row_blocks

STEPS_PER_OCTAVE = 12
# Smaller shares would square to denormal numbers, which are slow to compute with.
SMALLEST = 1e-18


def brier_scan(
    logits: np.ndarray,
    labels: np.ndarray,
    sample_weight: np.ndarray,
    low: float,
    high: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean Brier score on a grid of log T that covers [low, high].

    To halve T is to square exp(z/T), so exponentials are taken once per octave and
    not once per grid point.

    Returns
    -------
    grid : (g,) ascending values of log T, twelve per factor of two.
    scores : (g,)
    """
    n_octaves = int(np.ceil((high - low) / np.log(2)))
    offsets = np.arange(STEPS_PER_OCTAVE) / STEPS_PER_OCTAVE * np.log(2)
    # Row o, column s: log T = high - offset_s - o log 2.
    grid = high - offsets - np.log(2) * np.arange(n_octaves)[:, None]
    scores = np.zeros(grid.shape)
    buffers = block_buffer(logits), block_buffer(logits)
    ones = np.ones(logits.shape[1], buffers[0].dtype)
    for rows in row_blocks(*logits.shape):
        block, each = logits[rows], np.arange(rows.stop - rows.start)
        shifted, powers = (buffer[: len(block)] for buffer in buffers)
        peak = block.max(axis=1, keepdims=True).astype(shifted.dtype)
        with np.errstate(over="ignore"):
            np.subtract(block, peak, out=shifted, dtype=shifted.dtype)
        weight = sample_weight[rows]
        for step in range(STEPS_PER_OCTAVE):
            factor = shifted.dtype.type(np.exp(-grid[0, step]))
            with np.errstate(over="ignore"):
                np.multiply(shifted, factor, out=powers)
            np.maximum(powers, np.log(SMALLEST), out=powers)
            np.exp(powers, out=powers)
            for octave in range(n_octaves):
                total = powers @ ones
                own = powers[each, labels[rows]] / total
                square = np.vecdot(powers, powers) / total**2
                scores[octave, step] += weight @ (square - 2 * own + 1)
                np.maximum(powers, SMALLEST, out=powers)
                np.square(powers, out=powers)
    order = np.argsort(grid.ravel())
    return grid.ravel()[order], scores.ravel()[order] / sample_weight.sum()
