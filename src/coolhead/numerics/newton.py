"""Newton's method in log b for many groups at once, kept inside a bracket."""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.moments import Rows, row_moments

MAX_STEP = 2.0
MAX_PASSES = 200


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


class Pull(NamedTuple):
    """A penalty (strength / 2) (log b - center)² on each group's mean loss."""

    strength: np.ndarray
    center: float


class Minimum(NamedTuple):
    """Per group: where the search ended and the mean loss and its slopes there."""

    log_inverse: np.ndarray
    at_bound: np.ndarray
    loss: np.ndarray
    bend: np.ndarray
    score_norm: np.ndarray


def minimise(
    rows: Rows,
    groups: Groups,
    start: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    wanted: np.ndarray,
    last_step: float,
    index: np.ndarray | None = None,
    pull: Pull | None = None,
) -> Minimum:
    """Minimise the loss of every `wanted` group over log b within `limits`.

    Newton squares the error, so the search ends with the first step smaller than
    `last_step`: about last_step² is then left. Groups that have ended are no longer
    visited.
    """
    position = np.clip(start, *limits)
    low, high = np.full(groups.count, -np.inf), np.full(groups.count, np.inf)
    active = wanted.copy()
    end = Minimum(
        position, np.zeros(groups.count, bool), *np.full((3, groups.count), np.nan)
    )
    for _ in range(MAX_PASSES):
        visit = _rows_of(active, groups.codes, index)
        slope, bend = _evaluate(rows, groups, visit, active, end)
        step = _newton_step(position, slope, bend, pull)
        rising = step < 0
        high = np.where(active & rising, position, high)
        low = np.where(active & ~rising, position, low)
        end.at_bound[:] = np.where(
            active, _stuck(position, rising, limits), end.at_bound
        )
        finished = (np.abs(step) < last_step) | (high - low < last_step) | end.at_bound
        proposal = np.clip(position + np.clip(step, -MAX_STEP, MAX_STEP), *limits)
        outside = ((proposal <= low) | (proposal >= high)) & ~finished
        with np.errstate(invalid="ignore"):
            proposal = np.where(outside, (low + high) / 2, proposal)
        _step_in_loss(end, active, position, proposal, slope)
        position[active] = proposal[active]
        active &= ~finished
        if not active.any():
            break
    return end


def _rows_of(
    active: np.ndarray, codes: np.ndarray, index: np.ndarray | None
) -> np.ndarray | None:
    """The rows of the active groups; None stands for all of them, in order."""
    if active.all():
        return index
    if index is None:
        return np.flatnonzero(active[codes])
    return index[active[codes[index]]]


def _evaluate(
    rows: Rows,
    groups: Groups,
    visit: np.ndarray | None,
    active: np.ndarray,
    end: Minimum,
) -> tuple[np.ndarray, np.ndarray]:
    """One pass: note the loss at the current position, return slope and curvature."""
    inverse = np.exp(end.log_inverse)
    codes = groups.codes if visit is None else groups.codes[visit]
    moments = row_moments(rows, inverse[codes], visit)
    share = groups.share if visit is None else groups.share[visit]
    slope, bend = (
        groups.mean(moments.score, visit),
        groups.mean(moments.curvature, visit),
    )
    squares = np.bincount(codes, np.square(share * moments.score), groups.count)
    end.loss[active] = groups.mean(moments.loss, visit)[active]
    # A subsample's shares sum to less than one; ratios of these two are unaffected.
    end.bend[active] = (np.square(inverse) * bend)[active]
    end.score_norm[active] = (inverse * np.sqrt(squares))[active]
    return inverse * slope, np.square(inverse) * bend


def _newton_step(
    position: np.ndarray, slope: np.ndarray, bend: np.ndarray, pull: Pull | None
) -> np.ndarray:
    """Step in log b; `slope` is d loss / d log b, `bend` is b² d² loss / d b²."""
    if pull is not None:
        slope = slope + pull.strength * (position - pull.center)
        # The full second derivative, but never less than a tenth of its safe part.
        safe = bend + pull.strength
        bend = np.maximum(safe + slope, 0.1 * safe)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slope == 0, 0.0, -slope / bend)


def _stuck(
    position: np.ndarray, rising: np.ndarray, limits: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """At a limit, with the minimum on its far side."""
    return np.where(rising, position <= limits[0], position >= limits[1])


def _step_in_loss(
    end: Minimum,
    active: np.ndarray,
    position: np.ndarray,
    proposal: np.ndarray,
    slope: np.ndarray,
) -> None:
    """Carry the loss along the last, tiny step by its Taylor series."""
    change = np.expm1(proposal - position)
    better = end.loss + slope * change + end.bend * np.square(change) / 2
    end.loss[active] = better[active]
