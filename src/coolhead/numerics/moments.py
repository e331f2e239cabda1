"""One pass over the logits: what the temperature solver needs of every row."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coolhead.numerics.blocks import block_buffer, computing_dtype, row_blocks
from coolhead.numerics.checks import (
    not_finite_message,
    probabilities_message,
    sum_tolerance,
)


@dataclass(frozen=True)
class Rows:
    """Logits with labels, and the facts about each row that never change.

    peak : (n,) largest logit; gap : (n,) peak minus the label's logit;
    drop : (n,) peak minus the row's mean. Both differences are float64 and >= 0.
    """

    logits: np.ndarray
    peak: np.ndarray
    gap: np.ndarray
    drop: np.ndarray

    def take(self, rows: np.ndarray) -> "Rows":
        """Some of the rows, by mask or numbers."""
        return Rows(self.logits[rows], self.peak[rows], self.gap[rows], self.drop[rows])


class Moments(NamedTuple):
    """Of some rows at some b: loss, its slope in log b, and the variance of b z.

    In units of log b they are of the order of one, however large the logits are.
    """

    loss: np.ndarray
    score: np.ndarray
    curvature: np.ndarray


def summarise_rows(logits: np.ndarray, labels: np.ndarray, *, scores: bool) -> Rows:
    """Read the logits once; refuse NaN, infinity and probabilities.

    scores : binary scores were given, which may well lie in [0, 1].
    """
    n_rows, n_columns = logits.shape
    buffer = block_buffer(logits)
    mean_of = np.full(n_columns, 1 / n_columns, buffer.dtype)
    peak, drop = np.empty(n_rows, buffer.dtype), np.empty(n_rows)
    for rows in row_blocks(n_rows, n_columns):
        block, work = logits[rows], buffer[: rows.stop - rows.start]
        top = block.max(axis=1)
        peak[rows] = top
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(top[:, None], block, out=work, dtype=buffer.dtype)
            drop[rows] = work @ mean_of
        _mend_or_refuse(logits, rows, drop)
    if not scores:
        _refuse_probabilities(logits, peak, drop)
    own = logits[np.arange(n_rows), labels].astype(np.float64)
    return Rows(logits, peak, peak - own, drop)


def peak_rows(logits: np.ndarray, labels: np.ndarray) -> Rows:
    """What `row_moments` needs of rows that were summarised before; no drop."""
    peak = logits.max(axis=1).astype(computing_dtype(logits), copy=False)
    own = logits[np.arange(len(logits)), labels].astype(np.float64)
    return Rows(logits, peak, peak - own, np.zeros(0))


def row_moments(
    rows: Rows, inverse_temperature: np.ndarray, index: np.ndarray | None = None
) -> Moments:
    """Loss, d loss / d log b and Var(b z) of each row at its own b, (m,) float64.

    `index` restricts the pass to those rows; b has one entry per row visited.
    """
    logits = rows.logits
    n_rows = len(logits) if index is None else len(index)
    out = Moments(np.empty(n_rows), np.empty(n_rows), np.empty(n_rows))
    shifted, powers = block_buffer(logits[:n_rows]), block_buffer(logits[:n_rows])
    ones = np.ones(logits.shape[1], shifted.dtype)
    scale = inverse_temperature.astype(computing_dtype(logits))
    for block in row_blocks(n_rows, logits.shape[1]):
        pick = block if index is None else index[block]
        z, p = shifted[: block.stop - block.start], powers[: block.stop - block.start]
        np.subtract(logits[pick], rows.peak[pick, None], out=z, dtype=z.dtype)
        np.multiply(z, scale[block, None], out=z)
        np.exp(z, out=p)
        total = (p @ ones).astype(np.float64)
        first = np.vecdot(p, z) / total
        np.multiply(p, z, out=p)
        second = np.vecdot(p, z) / total
        gap = rows.gap[pick] * inverse_temperature[block]
        out.loss[block] = np.log(total) + gap
        out.score[block] = first + gap
        # Rounding may leave a tiny negative variance where one class has all mass.
        out.curvature[block] = np.maximum(second - first * first, 0)
    return out


def _mend_or_refuse(logits: np.ndarray, rows: slice, drop: np.ndarray) -> None:
    """A mean is finite unless an entry is not, or the float32 sum overflowed."""
    broken = np.flatnonzero(~np.isfinite(drop[rows])) + rows.start
    if not len(broken):
        return
    bad = broken[~np.isfinite(logits[broken]).all(axis=1)]
    if len(bad):
        raise ValueError(not_finite_message(logits, bad, "logits"))
    exact = logits[broken].astype(np.float64)
    drop[broken] = exact.max(axis=1) - exact.mean(axis=1)


def _refuse_probabilities(
    logits: np.ndarray, peak: np.ndarray, drop: np.ndarray
) -> None:
    if peak.max() > 1:
        return
    total = logits.shape[1] * (peak - drop)
    if np.abs(total - 1).max() > sum_tolerance(logits.dtype):
        return
    if all(logits[rows].min() >= 0 for rows in row_blocks(*logits.shape)):
        raise ValueError(probabilities_message("logits"))
