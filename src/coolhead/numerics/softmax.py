"""Softmax of scaled logits, and what is derived from it, row block by row block."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from coolhead.numerics.blocks import block_buffer, row_blocks
from coolhead.numerics.checks import bad_logits_message, masked_label_message


def softmax(logits: np.ndarray, temperature: float | np.ndarray) -> np.ndarray:
    """softmax(z / T), shape (n, k), in the computing precision of the logits."""
    probabilities = np.empty(logits.shape, block_buffer(logits[:1]).dtype)
    for rows, _, powers, total in _scaled_blocks(logits, temperature):
        np.divide(powers, total[:, None], out=probabilities[rows])
    return probabilities


def confidence(
    logits: np.ndarray, temperature: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Largest probability and its class, (n,) each, without the probabilities."""
    largest = np.empty(len(logits), block_buffer(logits[:1]).dtype)
    predicted = np.empty(len(logits), np.intp)
    for rows, top, _, total in _scaled_blocks(logits, temperature):
        # The largest shifted logit is 0, so its power is 1.
        np.divide(1, total, out=largest[rows])
        predicted[rows] = top
    return largest, predicted


def log_loss_rows(
    logits: np.ndarray, labels: np.ndarray, temperature: float | np.ndarray
) -> np.ndarray:
    """Negative log-likelihood of each row, (n,) float64, computed in logit space."""
    losses = np.empty(len(logits))
    inverse = _inverse(temperature, len(logits))
    for rows, top, _, total in _scaled_blocks(logits, temperature):
        block = logits[rows]
        gap = _gap(block, top, labels, rows)
        losses[rows] = np.log(total, dtype=np.float64) + gap * inverse[rows]
    return losses


def brier_rows(
    logits: np.ndarray, labels: np.ndarray, temperature: float | np.ndarray
) -> np.ndarray:
    """Brier score of each row, summed over classes, (n,) float64."""
    scores = np.empty(len(logits))
    for rows, _, powers, total in _scaled_blocks(logits, temperature):
        own = powers[np.arange(len(powers)), labels[rows]] / total
        squares = np.vecdot(powers, powers) / np.square(total)
        scores[rows] = squares - 2 * own + 1
    return scores


class RowScores(NamedTuple):
    """Of every row, (n,) each: what the functions above give one by one."""

    confidence: np.ndarray
    predicted: np.ndarray
    log_loss: np.ndarray
    brier: np.ndarray


def score_rows(
    logits: np.ndarray, labels: np.ndarray, temperature: float | np.ndarray
) -> RowScores:
    """Confidence, class, log loss and Brier score of each row in a single pass."""
    n_rows = len(logits)
    sure, predicted = np.empty(n_rows), np.empty(n_rows, np.intp)
    losses, briers = np.empty(n_rows), np.empty(n_rows)
    inverse = _inverse(temperature, n_rows)
    for rows, top, powers, total in _scaled_blocks(logits, temperature):
        block, each = logits[rows], np.arange(len(top))
        gap = _gap(block, top, labels, rows)
        own = powers[each, labels[rows]] / total
        sure[rows], predicted[rows] = 1 / total, top
        losses[rows] = np.log(total, dtype=np.float64) + gap * inverse[rows]
        briers[rows] = np.vecdot(powers, powers) / np.square(total) - 2 * own + 1
    return RowScores(sure, predicted, losses, briers)


def _scaled_blocks(
    logits: np.ndarray, temperature: float | np.ndarray
) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
    """(rows, top class, exp((z - max) / T), sum of those) of every block."""
    buffer = block_buffer(logits)
    inverse = _inverse(temperature, len(logits))[:, None].astype(buffer.dtype)
    ones = np.ones(logits.shape[1], buffer.dtype)
    for rows in row_blocks(*logits.shape):
        block = logits[rows]
        powers = buffer[: len(block)]
        top = block.argmax(axis=1)
        peak = block[np.arange(len(block)), top].astype(buffer.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(block, peak[:, None], out=powers, dtype=buffer.dtype)
            _refuse_bad(logits, rows, powers @ ones)
            np.multiply(powers, inverse[rows], out=powers)
        np.exp(powers, out=powers)
        yield rows, top, powers, powers @ ones


def _gap(
    block: np.ndarray, top: np.ndarray, labels: np.ndarray, rows: slice
) -> np.ndarray:
    """Largest logit minus the label's; a label of probability zero is refused."""
    each = np.arange(len(block))
    gap = block[each, top].astype(np.float64) - block[each, labels[rows]]
    masked = np.flatnonzero(np.isinf(gap))
    if len(masked):
        raise ValueError(masked_label_message(labels, masked + rows.start))
    return gap


def _refuse_bad(logits: np.ndarray, rows: slice, sums: np.ndarray) -> None:
    """NaN, +inf and rows of -inf alone sum to NaN; masks and overflow to -inf."""
    bad = np.flatnonzero(np.isnan(sums))
    if len(bad):
        raise ValueError(bad_logits_message(logits, bad + rows.start, "logits"))


def _inverse(temperature: float | np.ndarray, n_rows: int) -> np.ndarray:
    with np.errstate(divide="ignore"):
        inverse = 1 / np.asarray(temperature, np.float64)
    return np.broadcast_to(inverse, (n_rows,))
