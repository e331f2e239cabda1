"""Softmax of scaled logits, and what is derived from it, row block by row block.

Class offsets b (n_classes,) are added to the scaled logits: softmax(z / T + b).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from coolhead.numerics.blocks import (
    block_buffer,
    computing_dtype,
    each_block,
    row_dots,
    row_sums,
)
from coolhead.numerics.checks import bad_logits_message

# (rows, top class, exp(z / T + b - max), sum of those) of a block
Use = Callable[[slice, np.ndarray, np.ndarray, np.ndarray], None]
Offsets = np.ndarray | None


def softmax(
    logits: np.ndarray, temperature: float | np.ndarray, offsets: Offsets = None
) -> np.ndarray:
    """softmax(z / T + b), shape (n, k), in the computing precision of the logits."""
    probabilities = np.empty(logits.shape, computing_dtype(logits))

    def use(rows, top, powers, total):
        np.divide(powers, total[:, None], out=probabilities[rows])

    _each_scaled(logits, temperature, use, offsets)
    return probabilities


def confidence(
    logits: np.ndarray, temperature: float | np.ndarray, offsets: Offsets = None
) -> tuple[np.ndarray, np.ndarray]:
    """Largest probability and its class, (n,) each, without the probabilities."""
    largest = np.empty(len(logits), computing_dtype(logits))
    predicted = np.empty(len(logits), np.intp)

    def use(rows, top, powers, total):
        # The largest shifted logit is 0, so its power is 1.
        np.divide(1, total, out=largest[rows])
        predicted[rows] = top

    _each_scaled(logits, temperature, use, offsets)
    return largest, predicted


def log_loss_rows(
    logits: np.ndarray,
    labels: np.ndarray,
    temperature: float | np.ndarray,
    offsets: Offsets = None,
) -> np.ndarray:
    """Negative log-likelihood of each row, (n,) float64, computed in logit space."""
    losses = np.empty(len(logits))
    gap = _gaps(logits, labels, temperature, offsets)

    def use(rows, top, powers, total):
        losses[rows] = np.log(total, dtype=np.float64) + gap(rows, top)

    _each_scaled(logits, temperature, use, offsets)
    return losses


def brier_rows(
    logits: np.ndarray,
    labels: np.ndarray,
    temperature: float | np.ndarray,
    offsets: Offsets = None,
) -> np.ndarray:
    """Brier score of each row, summed over classes, (n,) float64."""
    scores = np.empty(len(logits))

    def use(rows, top, powers, total):
        scores[rows] = _briers(powers, total, labels[rows])

    _each_scaled(logits, temperature, use, offsets)
    return scores


class RowScores(NamedTuple):
    """Of every row, (n,) each: what the functions above give one by one."""

    confidence: np.ndarray
    predicted: np.ndarray
    log_loss: np.ndarray
    brier: np.ndarray


def score_rows(
    logits: np.ndarray,
    labels: np.ndarray,
    temperature: float | np.ndarray,
    offsets: Offsets = None,
    *,
    each: Callable[[slice, np.ndarray, np.ndarray], None] | None = None,
) -> RowScores:
    """Confidence, class, log loss and Brier score of each row in a single pass.

    each : called with the rows, exp(z / T + b - max) and its sum of every block, on any
        thread.
    """
    n_rows = len(logits)
    largest, predicted = np.empty(n_rows), np.empty(n_rows, np.intp)
    losses, briers = np.empty(n_rows), np.empty(n_rows)
    gap = _gaps(logits, labels, temperature, offsets)

    def use(rows, top, powers, total):
        largest[rows], predicted[rows] = 1 / total, top
        losses[rows] = np.log(total, dtype=np.float64) + gap(rows, top)
        briers[rows] = _briers(powers, total, labels[rows])
        if each is not None:
            each(rows, powers, total)

    _each_scaled(logits, temperature, use, offsets)
    return RowScores(largest, predicted, losses, briers)


def _each_scaled(
    logits: np.ndarray,
    temperature: float | np.ndarray,
    use: Use,
    offsets: Offsets = None,
) -> None:
    """One pass over the logits; `use` is called for every block, on any thread."""
    dtype = computing_dtype(logits)
    inverse = _inverse(temperature, len(logits))[:, None].astype(dtype)

    def work(rows: slice, buffer: np.ndarray) -> None:
        block = logits[rows]
        powers = buffer[: len(block)]
        top = block.argmax(axis=1)
        peak = block[np.arange(len(block)), top].astype(dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(block, peak[:, None], out=powers, dtype=dtype)
            _refuse_bad(logits, rows, row_sums(powers))
            np.multiply(powers, inverse[rows], out=powers)
            if offsets is not None:
                powers += offsets.astype(dtype)
                top = powers.argmax(axis=1)
                powers -= powers[np.arange(len(block)), top][:, None]
        np.exp(powers, out=powers)
        use(rows, top, powers, row_sums(powers))

    each_block(logits.shape, work, partial(block_buffer, logits))


def _briers(powers: np.ndarray, total: np.ndarray, labels: np.ndarray) -> np.ndarray:
    own = powers[np.arange(len(powers)), labels] / total
    return row_dots(powers, powers) / np.square(total) - 2 * own + 1


def _gaps(
    logits: np.ndarray,
    labels: np.ndarray,
    temperature: float | np.ndarray,
    offsets: Offsets,
) -> Callable[[slice, np.ndarray], np.ndarray]:
    """Return a function of (rows, top): the top class's scaled score minus the label's.

    It is infinite for a label of probability zero.
    """
    inverse = _inverse(temperature, len(logits))

    def gap(rows: slice, top: np.ndarray) -> np.ndarray:
        block, own = logits[rows], labels[rows]
        each = np.arange(len(block))
        found = block[each, top].astype(np.float64) - block[each, own]
        found *= inverse[rows]
        return found if offsets is None else found + offsets[top] - offsets[own]

    return gap


def _refuse_bad(logits: np.ndarray, rows: slice, sums: np.ndarray) -> None:
    """NaN, +inf and rows of -inf alone sum to NaN; masks and overflow to -inf."""
    bad = np.flatnonzero(np.isnan(sums))
    if len(bad):
        raise ValueError(bad_logits_message(logits, bad + rows.start, "logits"))


def _inverse(temperature: float | np.ndarray, n_rows: int) -> np.ndarray:
    with np.errstate(divide="ignore"):
        inverse = 1 / np.asarray(temperature, np.float64)
    if inverse.shape == (n_rows,):
        return inverse
    return np.broadcast_to(inverse, (n_rows,))
