"""Classes that a row does not have: their logit is -inf, or as good as that.

Masks come as -inf, as -1e9, as the smallest number of the type. Any of them in a mean
over the classes would decide the mean alone, so a logit counts as masked where it lies
further below the row's largest than `reach`: 300 times what the rows themselves find
worth telling apart. That is how far the labels' logits lie below the largest, or by how
much the two largest differ; no mask can reach either. The rule has no unit (scaled
logits scale the reach), needs one number once it is known, and at any temperature of
that order a class beyond it has a probability below exp(-300).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from coolhead.numerics.blocks import (
    block_buffer,
    computing_dtype,
    each_block,
    row_blocks,
    row_dots,
    row_sums,
)
from coolhead.numerics.checks import (
    bad_logits_message,
    masked_label_message,
    refuse_probabilities,
)

REACH = 300.0
SAMPLED_ROWS = 256
SAMPLED_GAPS = 10_000


def useful_reach(
    logits: np.ndarray, peak: np.ndarray, gap: np.ndarray, deepest: float
) -> float:
    """How far below the largest logit of its row a logit still counts.

    peak : (n,) largest logits; gap : (n,) peak minus the label's logit, zeros where
    labels are unknown; deepest : the largest distance to a peak in all rows.
    """
    some = gap[:: max(1, len(gap) // SAMPLED_GAPS)]
    mistakes = some[some > 0]
    # The upper end, but not the very end: one row may be out of all proportion.
    near = float(np.quantile(mistakes, 0.9)) if len(mistakes) else 0.0
    if not deepest <= REACH * near:
        near = max(near, _typical_margin(logits, peak))
    with np.errstate(over="ignore"):
        return REACH * near if near > 0 else np.inf


def useful_drops(block: np.ndarray, peak: np.ndarray, reach: float) -> np.ndarray:
    """Largest logit minus the mean of those within reach, (n,) float64, of a block."""
    drops = distances(block, peak)
    useful = drops <= reach
    # Divided first: the sum of numbers near the largest would be none.
    drops /= np.maximum(useful.sum(axis=1, keepdims=True), 1)
    return np.where(useful, drops, 0.0).sum(axis=1)


def hide_masked(
    logits: np.ndarray, reach: float, labels: np.ndarray | None = None
) -> np.ndarray:
    """The same logits with -inf for all masked classes; a copy only where needed.

    A label shows that its class counts, however low: its row is left as it is.
    """
    hidden = logits
    for rows in row_blocks(*logits.shape):
        block = logits[rows]
        with np.errstate(over="ignore"):
            if float(block.max()) - float(block.min()) <= reach:
                continue
        drops = distances(block, block.max(axis=1))
        masked = np.isfinite(drops) & (drops > reach)
        if labels is not None:
            masked[masked[np.arange(len(block)), labels[rows]]] = False
        if masked.any():
            hidden = logits.copy() if hidden is logits else hidden
            hidden[rows][masked] = -np.inf
    return hidden


def class_counts(logits: np.ndarray) -> np.ndarray:
    """Number of classes of each row that are not -inf, (n,)."""
    counts = [
        np.isfinite(logits[rows]).sum(axis=1) for rows in row_blocks(*logits.shape)
    ]
    return np.concatenate(counts)


def without_masked(probabilities: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Probabilities of a block, exactly zero where the logit is -inf."""
    masked = np.isneginf(logits)
    if not masked.any():
        return probabilities
    kept = np.where(masked, 0.0, probabilities)
    return kept / kept.sum(axis=1, keepdims=True)


def distances(block: np.ndarray, peak: np.ndarray) -> np.ndarray:
    """Each row's largest logit minus its logits, float64, of a block.

    Rows that are no logits give NaN; those who compute with the logits refuse them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return peak[:, None].astype(np.float64) - block


def typical(drops: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Geometric mean of what is positive, which one huge row cannot move; or zero."""
    positive = drops > 0
    share = np.ones(len(drops)) if weights is None else weights
    total = share[positive].sum()
    if not total:
        return 0.0
    return float(np.exp(share[positive] @ np.log(drops[positive]) / total))


def typical_spread(logits: np.ndarray) -> float:
    """Geometric mean of (row maximum - row mean) where there are no labels."""
    peak = logits.max(axis=1)
    reach = useful_reach(logits, peak, np.zeros(0), np.inf)
    spreads = [
        useful_drops(logits[rows], peak[rows], reach)
        for rows in row_blocks(*logits.shape)
    ]
    return typical(np.concatenate(spreads))


def _typical_margin(logits: np.ndarray, peak: np.ndarray) -> float:
    """Lower quartile, over some rows, of the largest logit minus the next smaller one.

    More than half of the rows may have but one class.
    """
    step = max(1, len(logits) // SAMPLED_ROWS)
    drops = distances(logits[::step], peak[::step])
    margins = np.where(drops > 0, drops, np.inf).min(axis=1)
    margins = margins[np.isfinite(margins)]
    return float(np.quantile(margins, 0.25)) if len(margins) else 0.0


def pad_options(rows: Sequence[Sequence[float]], width: int) -> np.ndarray:
    """Scores (n, width) of rows with their own number of options, -inf behind them."""
    padded = np.full((len(rows), width), -np.inf)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    return padded


# exp of these is zero: further down a class is only further from being seen.
LOWEST = {np.float32: -200.0, np.float64: -1000.0}


@dataclass(frozen=True)
class Rows:
    """Logits with labels, and the facts about each row that never change.

    whole : (m, k) logits, of which these are the rows `index`, or all where it is None.
    Logits are large; fits that leave rows out repeatedly need not copy them.
    peak : (n,) largest logit; gap : (n,) peak minus the label's logit;
    drop : (n,) peak minus the mean of all logits but -inf; spread : (n,) peak minus the
    mean of the logits within `reach` (see `masks`). All differences are float64, >= 0.
    deepest : the largest distance of any logit to the peak of its row.
    """

    whole: np.ndarray
    peak: np.ndarray
    gap: np.ndarray
    drop: np.ndarray
    spread: np.ndarray
    deepest: float
    reach: float
    index: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.peak)

    @cached_property
    def logits(self) -> np.ndarray:
        """(n, k), copied when first asked for."""
        return self.whole if self.index is None else self.whole[self.index]

    def typical_spread(self, weights: np.ndarray | None = None) -> float:
        """The unit of temperatures, as `Totals.typical_spread` has it per group."""
        return typical(self.spread, weights) or typical(self.drop, weights)

    def take(self, index: np.ndarray) -> "Rows":
        """Some of the rows."""
        return replace(
            self,
            peak=self.peak[index],
            gap=self.gap[index],
            drop=self.drop[index],
            spread=self.spread[index],
            index=self.places(np.arange(len(self))[index]),
        )

    def places(self, index: np.ndarray | None) -> np.ndarray | None:
        """Where in `whole` these rows (the rows `index` of them) are; None for all."""
        if self.index is None or index is None:
            return self.index if index is None else index
        return self.index[index]


class Moments(NamedTuple):
    """Of some rows at some b: loss, its slope in log b, and the variance of b z.

    In units of log b they are of the order of one, however large the logits are.
    """

    loss: np.ndarray
    score: np.ndarray
    curvature: np.ndarray


def summarise_rows(logits: np.ndarray, labels: np.ndarray, *, scores: bool) -> Rows:
    """Read the logits once; refuse NaN, infinity, masked labels and probabilities.

    scores : binary scores were given, which may well lie in [0, 1].
    """
    n_rows, dtype = len(logits), computing_dtype(logits)
    peak, drop = np.empty(n_rows, dtype), np.empty(n_rows)
    depths: list[tuple[slice, float]] = []

    def work(rows: slice, buffer: np.ndarray) -> None:
        block, apart = logits[rows], buffer[: rows.stop - rows.start]
        top = block.max(axis=1)
        peak[rows] = top
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(top[:, None], block, out=apart, dtype=dtype)
            drop[rows] = row_sums(apart) / apart.shape[1]
        if not np.isfinite(drop[rows]).all():
            _mend_or_refuse(logits, rows, drop)
        depths.append((rows, float(apart.max())))

    each_block(logits.shape, work, partial(block_buffer, logits))
    if not scores:
        refuse_probabilities(logits, "logits")
    gap = _gaps(logits, labels, peak)
    deepest = max(depth for _, depth in depths)
    reach = useful_reach(logits, peak, gap, deepest)
    spread = drop.copy() if deepest > reach else drop
    for rows, depth in depths:
        if depth > reach:  # only blocks that hold masked classes are read again
            spread[rows] = useful_drops(logits[rows], peak[rows], reach)
    return Rows(logits, peak, gap, drop, spread, deepest, reach)


def peak_rows(logits: np.ndarray, labels: np.ndarray) -> Rows:
    """What `row_moments` needs of rows that were summarised before; no drop."""
    peak = logits.max(axis=1).astype(computing_dtype(logits), copy=False)
    with np.errstate(over="ignore"):
        deepest = float(peak.max()) - float(logits.min()) if len(logits) else 0.0
    gap, none = _gaps(logits, labels, peak), np.zeros(0)
    return Rows(logits, peak, gap, none, none, deepest, np.inf)


def row_moments(
    rows: Rows,
    inverse_temperature: np.ndarray,
    index: np.ndarray | None = None,
    *,
    dtype: type[np.floating] | None = None,
) -> Moments:
    """Loss, d loss / d log b and Var(b z) of each row at its own b, (m,) float64.

    `index` restricts the pass to those rows; b has one entry per row visited. `dtype`
    is what to compute in, by default the computing precision of the logits.
    """
    logits, places = rows.whole, rows.places(index)
    n_rows = len(rows) if index is None else len(index)
    out = Moments(np.empty(n_rows), np.empty(n_rows), np.empty(n_rows))
    dtype = dtype or computing_dtype(logits)
    # Distances to the peak are small numbers: they may be rounded, the logits may not.
    apart = np.result_type(dtype, computing_dtype(logits))
    scale = inverse_temperature.astype(dtype)
    with np.errstate(over="ignore"):
        furthest = rows.deepest * float(scale.max(initial=0))
    masked = not furthest < float(np.finfo(dtype).max) / 4

    def work(block: slice, buffers: np.ndarray) -> None:
        pick = block if index is None else index[block]
        here = logits[block if places is None else places[block]]
        z, p = (buffer[: block.stop - block.start] for buffer in buffers)
        with np.errstate(over="ignore"):
            np.subtract(here, rows.peak[pick, None], out=z, dtype=apart)
            np.multiply(z, scale[block, None], out=z)
        if masked:  # zero times infinity is no number
            np.maximum(z, LOWEST[dtype], out=z)
        np.exp(z, out=p)
        total = row_sums(p).astype(np.float64)
        first = row_dots(p, z) / total
        np.multiply(p, z, out=p)
        second = row_dots(p, z) / total
        gap = rows.gap[pick] * scale[block].astype(np.float64)
        out.loss[block] = np.log(total) + gap
        out.score[block] = first + gap
        # Rounding may leave a tiny negative variance where one class has all mass.
        out.curvature[block] = np.maximum(second - first * first, 0)

    def buffers(rows: int) -> np.ndarray:
        return np.empty((2, rows, logits.shape[1]), dtype)

    each_block((n_rows, logits.shape[1]), work, buffers)
    return out


def _gaps(logits: np.ndarray, labels: np.ndarray, peak: np.ndarray) -> np.ndarray:
    own = logits[np.arange(len(logits)), labels].astype(np.float64)
    gap = peak - own
    if not np.isfinite(gap).all():
        raise ValueError(masked_label_message(labels, np.flatnonzero(np.isinf(own))))
    return gap


def _mend_or_refuse(logits: np.ndarray, rows: slice, drop: np.ndarray) -> None:
    """A mean is finite unless an entry is not, or the float32 sum overflowed."""
    broken = np.flatnonzero(~np.isfinite(drop[rows])) + rows.start
    bad = broken[~np.isfinite(logits[broken].max(axis=1))]
    if len(bad):
        raise ValueError(bad_logits_message(logits, bad, "logits"))
    exact = logits[broken]
    drop[broken] = useful_drops(exact, exact.max(axis=1), np.finfo(np.float64).max)
