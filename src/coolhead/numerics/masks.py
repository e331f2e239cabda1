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

import numpy as np

from coolhead.numerics.blocks import row_blocks

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
    if weights is not None:
        positive &= weights > 0
        weights = weights[positive]
    if not positive.any():
        return 0.0
    return float(np.exp(np.average(np.log(drops[positive]), weights=weights)))


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
