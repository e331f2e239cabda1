"""Sums over the rows of every group: all that the temperature solver asks of data.

They add up over parts of the rows, so that parts may live on different machines.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from coolhead.numerics.blocks import computing_dtype
from coolhead.numerics.moments import Rows, row_moments

WARM_START_ROWS = 2_000
WARM_START_ROWS_PER_GROUP = 100
WARM_START_SHARE = 1 / 8


class Groups(NamedTuple):
    """codes : (n,) group of each row; share : (n,) weight of the row in its group.

    The shares of a group sum to one, so that weighted sums are weighted means.
    """

    codes: np.ndarray
    share: np.ndarray
    count: int

    def mean(self, values: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """Weighted mean of `values` (of the rows `index`) in every group."""
        if index is None:
            return np.bincount(self.codes, self.share * values, self.count)
        return np.bincount(self.codes[index], self.share[index] * values, self.count)


class Totals(NamedTuple):
    """Of every group, before any iteration; (g,) each.

    n_samples : rows; mass : sum of the weights; varied : share of the rows that are not
    constant, log_drop : their sum of share times log (row maximum - row mean); useful,
    log_spread : the same where masked classes do not count; slope_at_zero,
    slope_at_infinity : of the loss, at the ends of b's range.
    """

    n_samples: np.ndarray
    mass: np.ndarray
    varied: np.ndarray
    log_drop: np.ndarray
    useful: np.ndarray
    log_spread: np.ndarray
    slope_at_zero: np.ndarray
    slope_at_infinity: np.ndarray

    def typical_spread(self) -> np.ndarray:
        """Geometric mean of the rows' spreads; zero where all rows are constant.

        An arithmetic mean would follow a single row of huge logits. A group in which
        nothing is within reach is on a scale of its own: there, all classes count.
        """
        useful, varied = self.useful > 0, self.varied > 0
        mean = np.where(
            useful,
            self.log_spread / np.where(useful, self.useful, 1.0),
            self.log_drop / np.where(varied, self.varied, 1.0),
        )
        return np.where(varied, np.exp(mean), 0.0)


class Sums(NamedTuple):
    """Of every group at one b each; (g,) each.

    loss, score, curvature : weighted means of the loss, of its slope in log b and of
    the variance of b z; squares : sum of the squared weighted scores.
    """

    loss: np.ndarray
    score: np.ndarray
    curvature: np.ndarray
    squares: np.ndarray


Evaluate = Callable[[np.ndarray, np.ndarray], Sums]
"""(log b (g,), active (g,) bool) -> Sums; groups that are not active may be wrong."""


def group_totals(rows: Rows, groups: Groups) -> Totals:
    """What decides, per group, whether the loss has a minimum and where to look."""
    # Differences near the smallest number of the type cannot be scaled to order one.
    smallest = 1e4 * np.finfo(rows.peak.dtype).tiny
    varied, useful = rows.drop > smallest, rows.spread > smallest
    return Totals(
        np.bincount(groups.codes, minlength=groups.count),
        np.bincount(groups.codes, groups.share, groups.count),
        groups.mean(varied),
        groups.mean(np.log(np.where(varied, rows.drop, 1.0))),
        groups.mean(useful),
        groups.mean(np.log(np.where(useful, rows.spread, 1.0))),
        groups.mean(rows.gap - rows.drop),
        groups.mean(rows.gap),
    )


def group_sums(
    rows: Rows,
    groups: Groups,
    index: np.ndarray | None,
    log_inverse: np.ndarray,
    active: np.ndarray,
    *,
    dtype: type[np.floating] | None = None,
) -> Sums:
    """One pass over the rows (over the rows `index`) of the active groups.

    dtype : what to compute in, by default the computing precision of the logits.
    """
    visit = _rows_of(active, groups.codes, index)
    codes = groups.codes if visit is None else groups.codes[visit]
    share = groups.share if visit is None else groups.share[visit]
    moments = row_moments(rows, np.exp(log_inverse)[codes], visit, dtype=dtype)
    with np.errstate(over="ignore"):
        # One row out of all proportion: the error of T is then as good as infinite.
        squares = np.square(share * moments.score)
    return _unrounded(
        Sums(
            np.bincount(codes, share * moments.loss, groups.count),
            np.bincount(codes, share * moments.score, groups.count),
            np.bincount(codes, share * moments.curvature, groups.count),
            np.bincount(codes, squares, groups.count),
        ),
        log_inverse,
        dtype or computing_dtype(rows.whole),
    )


def _unrounded(sums: Sums, log_inverse: np.ndarray, dtype: type[np.floating]) -> Sums:
    """Sums at b itself; the rows saw it rounded, which alone would move T by 6e-8."""
    if dtype is np.float64:
        return sums
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        rounding = log_inverse - np.log(np.exp(log_inverse).astype(dtype), dtype=float)
    rounding = np.where(np.abs(rounding) < 1e-6, rounding, 0.0)
    slope = sums.curvature + sums.score
    return sums._replace(
        loss=sums.loss + rounding * sums.score, score=sums.score + rounding * slope
    )


def warm_start_strides(sizes: np.ndarray) -> np.ndarray | None:
    """Take every how manyth row of each group, (g,), to find a start; None for no."""
    some = min(WARM_START_ROWS, WARM_START_SHARE * sizes.sum()) / len(sizes)
    if some < WARM_START_ROWS_PER_GROUP:
        some = WARM_START_ROWS_PER_GROUP
        if sizes.sum() < some * len(sizes) / WARM_START_SHARE:
            return None  # that would be many of the rows anyway
    return np.maximum(1, sizes // int(some))


def strided_rows(
    codes: np.ndarray, strides: np.ndarray, ranks: np.ndarray | None = None
) -> np.ndarray:
    """Index of every `strides[g]`-th row of each group g, in order.

    ranks : (g,) how many rows of each group come before these; none by default.
    """
    before = np.zeros(len(strides), np.intp) if ranks is None else ranks
    if len(strides) == 1:
        first = -before[0] % strides[0]
        return np.arange(first, len(codes), strides[0])
    sizes = np.bincount(codes, minlength=len(strides))
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    rank = np.arange(len(codes)) - (np.cumsum(sizes) - sizes - before)[in_order]
    return np.sort(order[rank % strides[in_order] == 0])


def _rows_of(
    active: np.ndarray, codes: np.ndarray, index: np.ndarray | None
) -> np.ndarray | None:
    """The rows of the active groups; None stands for all of them, in order."""
    if active.all():
        return index
    if index is None:
        return np.flatnonzero(active[codes])
    return index[active[codes[index]]]
