"""Losses with their gradients, for calibrators that are fitted by descent."""

from collections.abc import Iterator

import numpy as np

from coolhead.numerics.blocks import block_buffer, row_blocks


def temperature_slopes(
    logits: np.ndarray, labels: np.ndarray, temperature: np.ndarray, loss: str = "nll"
) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each row and its derivative by log T, (n,) float64 each.

    `loss` is "nll" or "brier" (squared error summed over classes); T has one entry
    per row.
    """
    losses, slopes = np.empty(len(logits)), np.empty(len(logits))
    buffer, inverse = block_buffer(logits), 1 / np.asarray(temperature, np.float64)
    for rows, shifted in _shifted_blocks(logits):
        powers, b = buffer[: len(shifted)], inverse[rows]
        with np.errstate(over="ignore"):
            np.multiply(shifted, b[:, None].astype(buffer.dtype), out=powers)
        np.exp(powers, out=powers)
        total = powers.sum(axis=1, dtype=np.float64)
        mean = np.vecdot(powers, shifted) / total
        each = np.arange(len(shifted))
        own = shifted[each, labels[rows]].astype(np.float64)
        if loss == "nll":
            losses[rows] = np.log(total) - b * own
            slopes[rows] = -b * (mean - own)
            continue
        chosen = powers[each, labels[rows]] / total
        squares = np.vecdot(powers, powers) / total**2
        np.square(powers, out=powers)
        uneven = np.vecdot(powers, shifted) / total**2 - mean * squares
        losses[rows] = squares - 2 * chosen + 1
        slopes[rows] = -2 * b * (uneven - chosen * (own - mean))
    return losses, slopes


def affine_slopes(
    logits: np.ndarray,
    labels: np.ndarray,
    sample_weight: np.ndarray,
    slope: np.ndarray,
    bias: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Weighted loss of softmax(A z + c), summed over rows, and its gradient.

    Parameters
    ----------
    logits : (n, k)
    labels : (n,)
    sample_weight : (n,)
    slope : A; (k,) stands for a diagonal matrix, (k, k) for a full one.
    bias : c, (k,)

    Returns
    -------
    loss, derivative by `slope` (same shape), derivative by `bias` (k,).
    """
    loss, by_slope, by_bias = 0.0, np.zeros(slope.shape), np.zeros(len(bias))
    buffer = block_buffer(logits)
    slope, bias = slope.astype(buffer.dtype), bias.astype(buffer.dtype)
    for rows in row_blocks(*logits.shape):
        masked = np.isneginf(logits[rows])
        block = filled(logits[rows].astype(buffer.dtype, copy=False))
        scores, weight = buffer[: len(block)], sample_weight[rows]
        if slope.ndim == 1:
            np.multiply(block, slope, out=scores)
        else:
            np.matmul(block, slope.T, out=scores)
        scores += bias
        scores[masked] = -np.inf
        each = np.arange(len(block)), labels[rows]
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[each].astype(np.float64)
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, dtype=np.float64)
        loss += float(weight @ (np.log(total) - own))
        scores *= (weight / total)[:, None].astype(buffer.dtype)
        scores[each] -= weight.astype(buffer.dtype)
        by_bias += scores.sum(axis=0)
        if slope.ndim == 1:
            by_slope += np.einsum("ij,ij->j", scores, block)
        else:
            by_slope += scores.T @ block
    return loss, by_slope, by_bias


def filled(block: np.ndarray) -> np.ndarray:
    """A block with zero for -inf, so that a masked class adds nothing to any sum."""
    masked = np.isneginf(block)
    return np.where(masked, block.dtype.type(0), block) if masked.any() else block


def _shifted_blocks(logits: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows, z - maximum of each row) of every block, in computing precision."""
    buffer = block_buffer(logits)
    for rows in row_blocks(*logits.shape):
        block = logits[rows]
        shifted = buffer[: len(block)]
        peak = block.max(axis=1, keepdims=True).astype(buffer.dtype)
        with np.errstate(over="ignore"):
            np.subtract(block, peak, out=shifted, dtype=buffer.dtype)
        # Zero times infinity is no number; zero times the largest number is zero.
        np.maximum(shifted, np.finfo(buffer.dtype).min, out=shifted)
        yield rows, shifted
