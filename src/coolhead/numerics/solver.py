"""What a fit of temperatures found, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from coolhead.numerics.blocks import computing_dtype
from coolhead.numerics.moments import Rows, row_moments


class Status(StrEnum):
    """How a fit ended. Only `converged` is an interior minimum of the loss.

    `nll_above_uncalibrated` comes from methods that minimise something else than the
    negative log-likelihood, and raised it on the very rows they were fitted on.

    Examples
    --------
    >>> import coolhead as ch
    >>> ch.Status("at_bound") == "at_bound"
    True
    >>> ch.fit_temperature([[4.0, 0.0], [0.0, 4.0]], [0, 1]).status    # never wrong
    'perfectly_separated'
    """

    CONVERGED = "converged"
    AT_BOUND = "at_bound"
    PERFECTLY_SEPARATED = "perfectly_separated"
    WORSE_THAN_UNIFORM = "worse_than_uniform"
    CONSTANT_LOGITS = "constant_logits"
    TOO_FEW_SAMPLES = "too_few_samples"
    FALLBACK = "fallback"
    NLL_ABOVE_UNCALIBRATED = "nll_above_uncalibrated"


@dataclass(frozen=True)
class TemperatureFit:
    """Fitted temperatures; `temperature[i]`, `status[i]`, ... belong to `groups[i]`.

    Without groups every field is a scalar and `groups` is None.

    temperature : T > 0, what the logits are divided by.
    status : one of `Status`, as a string.
    nll : weighted mean negative log-likelihood at that temperature.
    n_samples : number of rows.
    log_temperature_se : standard error of log T; NaN where there is no minimum.
    """

    temperature: Any
    groups: np.ndarray | None
    status: Any
    nll: Any
    n_samples: Any
    log_temperature_se: Any


class Solution(NamedTuple):
    """Arrays of one entry per group."""

    temperature: np.ndarray
    status: np.ndarray
    nll: np.ndarray
    n_samples: np.ndarray
    log_temperature_se: np.ndarray

    def of(self, groups: np.ndarray) -> "Solution":
        """Of some of the groups."""
        return Solution(*(column[groups] for column in self))

    def middle(self) -> np.ndarray | None:
        """Where to look for the log temperature of all groups together, (1,)."""
        known = self.status == Status.CONVERGED
        if not known.any():
            return None
        logs, sizes = np.log(self.temperature[known]), self.n_samples[known]
        return np.array([np.average(logs, weights=sizes)])


def as_fit(solution: Solution, names: np.ndarray | None) -> TemperatureFit:
    """Arrays for named groups; scalars where all rows were one unnamed group."""
    if names is not None:
        return TemperatureFit(solution.temperature, names, *solution[1:])
    temperature, status, nll, n_samples, error = (column[0] for column in solution)
    return TemperatureFit(
        float(temperature), None, str(status), float(nll), int(n_samples), float(error)
    )


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


# T is looked for between s / BOUND and s * BOUND, with s the typical (row maximum - row
# mean): relative to the logits, so that a head with huge logits is not clipped. Neither
# masked classes nor a few huge rows move it (see `masks` and `Totals`).
BOUND = 300.0
# The first step in log b that is smaller ends the search.
LAST_STEP = {np.float32: 1e-3, np.float64: 3e-5}
LAST_ROUGH_STEP = 0.02
# Logits of this size may be searched in single precision.
_LOG_LARGE = np.log(1e15)
# At the minimum the slope is a difference of equal numbers; where the loss bends less
# than a fifth of their size, single precision no longer finds the sixth digit of T.
LOPSIDED = 5.0


class TemperatureProblem(NamedTuple):
    """All that the solver knows of the data; it never sees a row.

    totals : of every group. rough : one pass over a small part of the rows, or None.
    single, double : one pass over all rows in that precision. dtype : what T is
    wanted in.
    """

    totals: Totals
    rough: Evaluate | None
    single: Evaluate
    double: Evaluate
    dtype: type[np.floating]

    def evaluate(self, log_inverse: np.ndarray, active: np.ndarray) -> Sums:
        """One pass in the precision that the logits deserve."""
        best = self.single if self.dtype is np.float32 else self.double
        return best(log_inverse, active)


def solve(
    problem: TemperatureProblem,
    penalty: Penalty | None = None,
    start: np.ndarray | None = None,
) -> Solution:
    """Temperatures of all groups, from sums over their rows alone."""
    totals = problem.totals
    spread = totals.typical_spread()
    status = _existence(totals, penalised=penalty is not None)
    wanted = status == Status.CONVERGED
    middle = -np.log(np.where(spread > 0, spread, 1.0))
    limits = middle - np.log(BOUND), middle + np.log(BOUND)
    first = middle + 1.0 if start is None else -start
    if not np.all(np.abs(middle) < _LOG_LARGE):
        problem = problem._replace(dtype=np.float64, rough=None, single=problem.double)
    end = _search(problem, first, limits, wanted, penalty)
    status = np.where(wanted & end.at_bound, _beyond(end, limits), status)
    log_inverse = _where_no_minimum(status, end.log_inverse, limits, penalty)
    nll = _complete_loss(problem.evaluate, end.loss, log_inverse)
    error = np.where(
        status == Status.CONVERGED, end.score_norm / positive(end.bend), np.nan
    )
    return Solution(np.exp(-log_inverse), status, nll, totals.n_samples, error)


def _existence(totals: Totals, *, penalised: bool) -> np.ndarray:
    """Status of each group before any iteration; `converged` means: worth solving."""
    status = np.full(len(totals.mass), str(Status.CONVERGED), dtype="<U19")
    if not penalised:  # a penalty towards a finite value always leaves a minimum
        status[totals.slope_at_zero >= 0] = Status.WORSE_THAN_UNIFORM
        status[totals.slope_at_infinity <= 0] = Status.PERFECTLY_SEPARATED
    status[totals.varied <= 0] = Status.CONSTANT_LOGITS
    status[totals.mass <= 0] = Status.TOO_FEW_SAMPLES
    return status


def _search(
    problem: TemperatureProblem,
    start: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    wanted: np.ndarray,
    penalty: Penalty | None,
) -> Minimum:
    """Cheap passes first: over a subsample, then in single precision.

    Each search begins where the one before ended, and knows how the loss bends there.
    """
    end = unsearched(start)
    if problem.rough is not None and penalty is None:
        rough = minimise(problem.rough, end, limits, wanted, LAST_ROUGH_STEP)
        # Few rows may lack a minimum that all rows together have.
        end = restarted(rough, np.where(rough.at_bound, start, rough.log_inverse))
    if problem.dtype is np.float32:
        last_step = LAST_STEP[np.float32]
        end = minimise(problem.single, end, limits, wanted, last_step, penalty)
        size = problem.totals.slope_at_infinity * np.exp(end.log_inverse)
        wanted = wanted & ~end.at_bound & (size > LOPSIDED * end.bend)
    else:
        end = minimise(problem.single, end, limits, wanted, LAST_ROUGH_STEP, penalty)
    if not wanted.any():
        return end
    last_step = LAST_STEP[np.float64]
    again = minimise(problem.double, end, limits, wanted, last_step, penalty)
    return Minimum(*(np.where(wanted, *two) for two in zip(again, end, strict=True)))


def _beyond(end: Minimum, limits: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Status of searches that ended at a bound.

    Seen from the hottest allowed T, where masked classes have no part, the loss may
    fall all the way to T = infinity: the slope at b = 0 that masks would hide.
    """
    hottest = end.log_inverse <= limits[0]
    worse = hottest & (end.slope - end.bend >= 0)
    return np.where(worse, str(Status.WORSE_THAN_UNIFORM), str(Status.AT_BOUND))


def _where_no_minimum(
    status: np.ndarray,
    log_inverse: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    penalty: Penalty | None,
) -> np.ndarray:
    """T at its lower or upper limit, or 1 (the penalty's centre), where none exists."""
    neutral = 0.0 if penalty is None else penalty.center
    indifferent = (status == Status.CONSTANT_LOGITS) | (
        status == Status.TOO_FEW_SAMPLES
    )
    log_inverse = np.where(status == Status.WORSE_THAN_UNIFORM, limits[0], log_inverse)
    log_inverse = np.where(status == Status.PERFECTLY_SEPARATED, limits[1], log_inverse)
    return np.where(indifferent, neutral, log_inverse)


def _complete_loss(
    evaluate: Evaluate, loss: np.ndarray, log_inverse: np.ndarray
) -> np.ndarray:
    """Mean loss also of the groups that were never searched."""
    missing = np.isnan(loss)
    if not missing.any():
        return loss
    return np.where(missing, evaluate(log_inverse, missing).loss, loss)


def positive(values: np.ndarray) -> np.ndarray:
    """`values`, with one in place of zeros and NaN, to divide by."""
    return np.where(values > 0, values, 1.0)
