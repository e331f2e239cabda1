"""Newton's method in log b for many groups at once, kept inside a bracket."""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.groups import Evaluate, Sums

MAX_STEP = 2.0
MAX_PASSES = 200


class Penalty(NamedTuple):
    """A penalty (strength / 2) (log b - center)² on each group's mean loss."""

    strength: np.ndarray
    center: float


class Minimum(NamedTuple):
    """Per group: where the search ended and the mean loss and its slopes there.

    tilt : how the bend changes with b: it grows as b to the power 1 + tilt.
    """

    log_inverse: np.ndarray
    at_bound: np.ndarray
    loss: np.ndarray
    slope: np.ndarray
    bend: np.ndarray
    score_norm: np.ndarray
    tilt: np.ndarray


def minimise(
    evaluate: Evaluate,
    start: Minimum,
    limits: tuple[np.ndarray, np.ndarray],
    wanted: np.ndarray,
    last_step: float,
    penalty: Penalty | None = None,
) -> Minimum:
    """Minimise the loss of every `wanted` group over log b within `limits`.

    `evaluate` is one pass over the data, wherever the data are.

    Newton squares the error, and the tilt known from earlier passes takes most of the
    square away; so the search ends with the first step smaller than `last_step`: less
    than last_step² is then left. Groups that have ended are no longer visited.
    """
    position = np.clip(start.log_inverse, *limits)
    low, high = np.full(len(position), -np.inf), np.full(len(position), np.inf)
    active = wanted.copy()
    end = restarted(start, position)
    before = None
    for _ in range(MAX_PASSES if active.any() else 0):
        sums = evaluate(position, active)
        slope, bend = sums.score, sums.curvature
        _note_tilt(end, before, position, bend)
        before = position.copy(), bend
        _note(sums, active, end)
        step = _newton_step(position, slope, bend, end.tilt, penalty)
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
        # Of groups that have ended, nothing is known here.
        proposal = np.where(active, proposal, position)
        _step_in_loss(end, active, position, proposal, slope)
        position[:] = proposal
        active &= ~finished
        if not active.any():
            break
    return end


def unsearched(position: np.ndarray) -> Minimum:
    """A search that has not begun: no group has a loss yet."""
    count = len(position)
    loss, slope, bend, score_norm = np.full((4, count), np.nan)
    at_bound, tilt = np.zeros(count, bool), np.zeros(count)
    return Minimum(position, at_bound, loss, slope, bend, score_norm, tilt)


def restarted(earlier: Minimum, position: np.ndarray) -> Minimum:
    """A search that has not begun, but knows the tilt from an earlier one."""
    return unsearched(position)._replace(tilt=earlier.tilt.copy())


def _note_tilt(
    end: Minimum,
    before: tuple[np.ndarray, np.ndarray] | None,
    position: np.ndarray,
    bend: np.ndarray,
) -> None:
    """Learn the tilt from the bends at two positions, neither too near nor too far."""
    if before is None:
        return
    apart = position - before[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = np.log(bend / before[1]) / apart - 1
    known = (np.abs(apart) > 1e-3) & (np.abs(apart) < 0.5) & (np.abs(tilt) < 5)
    end.tilt[known] = tilt[known]


def _note(sums: Sums, active: np.ndarray, end: Minimum) -> None:
    """Keep what was found at the current position."""
    end.loss[active] = sums.loss[active]
    end.slope[active] = sums.score[active]
    # A subsample's shares sum to less than one; ratios of these are unaffected.
    end.bend[active] = sums.curvature[active]
    end.score_norm[active] = np.sqrt(sums.squares)[active]


def _newton_step(
    position: np.ndarray,
    slope: np.ndarray,
    bend: np.ndarray,
    tilt: np.ndarray,
    penalty: Penalty | None,
) -> np.ndarray:
    """Step in log b; `slope` is d loss / d log b, `bend` is b² d² loss / d b²."""
    if penalty is not None:
        # The full second derivative, but never less than a tenth of its safe part.
        safe = bend + penalty.strength
        bend = np.maximum(safe + slope, 0.1 * safe)
        slope = slope + penalty.strength * (position - penalty.center)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = np.where(slope == 0, 0.0, -slope / bend)
        # Where the bend follows its power law, this is the minimum; no tilt, no change.
        bent = (tilt != 0) & (np.abs(tilt * step) < 0.5)
        return np.where(bent & (penalty is None), np.log1p(tilt * step) / tilt, step)


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
