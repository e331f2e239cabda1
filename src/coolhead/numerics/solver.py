"""What a fit of temperatures found, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coolhead.numerics.blocks import ELEMENTS_PER_BLOCK, computing_dtype
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

    def mean(self, values: np.ndarray | float) -> np.ndarray:
        """Weighted mean of `values` in every group."""
        return np.bincount(self.codes, self.share * values, self.count)


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


Evaluate = Callable[..., Sums]
"""(log b (g,), active (g,) bool, dtype) -> Sums; of other groups they may be wrong."""


def group_totals(rows: Rows, groups: Groups) -> Totals:
    """What decides, per group, whether the loss has a minimum and where to look."""
    # Differences near the smallest number of the type cannot be scaled to order one.
    smallest = 1e4 * np.finfo(rows.peak.dtype).tiny
    varied, useful = rows.drop > smallest, rows.spread > smallest
    return Totals(
        np.bincount(groups.codes, minlength=groups.count),
        groups.mean(1.0),
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
    log_inverse: np.ndarray,
    active: np.ndarray,
    dtype: type[np.floating],
) -> Sums:
    """One pass over the rows of the active groups, computed in `dtype`."""
    codes, share, visit = groups.codes, groups.share, None
    if not active.all():
        visit = np.flatnonzero(active[codes])
        codes, share = codes[visit], share[visit]
    moments = row_moments(rows, np.exp(log_inverse)[codes], visit, dtype=dtype)
    visited = Groups(codes, share, groups.count)
    with np.errstate(over="ignore"):
        # One row out of all proportion: the error of T is then as good as infinite.
        squares = np.bincount(codes, np.square(share * moments.score), groups.count)
    loss, score, curvature = map(visited.mean, moments)
    return Sums(loss, score, curvature, squares)


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


MAX_STEP = 2.0
MAX_PASSES = 200
# More than single precision moves log b.
TINY_STEP = 1e-6


class Penalty(NamedTuple):
    """A penalty (strength / 2) (log b - center)² on each group's mean loss."""

    strength: np.ndarray
    center: float


class _Search:
    """Newton's method over log b on the mean losses of many groups at once.

    Of every group: where the search stands, whether that is a limit, and what the last
    pass found there. The curvature grows as b to the power 1 + `growth`.
    """

    def __init__(
        self,
        start: np.ndarray,
        limits: tuple[np.ndarray, np.ndarray],
        penalty: Penalty | None,
    ):
        self.limits, self.penalty = limits, penalty
        self.log_inverse = np.clip(start, *limits)
        nothing = np.full((4, len(start)), np.nan)
        self.loss, self.gradient, self.curvature, self.score_norm = nothing
        self.at_bound, self.growth = np.zeros(len(start), bool), np.zeros(len(start))

    def run(self, evaluate: Evaluate, wanted: np.ndarray, last_step: float) -> None:
        """Minimise the loss of every `wanted` group by passes `evaluate` over the data.

        Newton squares the error, and the growth known from earlier passes takes most of
        the square away; so the search ends with the first step smaller than
        `last_step`: less than last_step² is then left. Groups that have ended are no
        longer visited.
        """
        low, high = np.full(len(wanted), -np.inf), np.full(len(wanted), np.inf)
        active, before = wanted.copy(), np.full(len(wanted), np.nan)
        for _ in range(MAX_PASSES):
            of = np.flatnonzero(active)
            if not len(of):
                break
            # The nearest log b whose b has 24 bits: any precision sees the same.
            mantissa, exponent = np.frexp(np.exp(self.log_inverse))
            here = np.log(np.ldexp(np.round(mantissa * 2**24) / 2**24, exponent))
            self._note(evaluate(here, active), of, (here - before)[of])
            before, here = here, here[of]
            step = self._newton_step(here, of)
            rising = step < 0
            high[of[rising]], low[of[~rising]] = here[rising], here[~rising]
            lowest, highest = (limit[of] for limit in self.limits)
            stuck = np.where(
                rising, here <= lowest + TINY_STEP, here >= highest - TINY_STEP
            )
            width = high[of] - low[of]
            finished = (np.abs(step) < last_step) | (width < last_step) | stuck
            there = here + np.clip(step, -MAX_STEP, MAX_STEP)
            outside = (there <= low[of] + TINY_STEP) | (there >= high[of] - TINY_STEP)
            outside &= ~finished
            there[outside] = (low[of[outside]] + high[of[outside]]) / 2
            there = np.clip(there, lowest, highest)
            # The last step is tiny: a Taylor series carries the loss along.
            change = np.expm1(there - here)
            self.loss[of] += change * (
                self.gradient[of] + self.curvature[of] * change / 2
            )
            self.log_inverse[of], self.at_bound[of] = there, stuck
            active[of] = ~finished

    def _note(self, sums: Sums, of: np.ndarray, apart: np.ndarray) -> None:
        """Keep the sums of some groups, and learn the growth from the last two."""
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.log(sums.curvature[of] / self.curvature[of]) / apart - 1
        # Neither too near for the difference of two passes nor too far for a power law.
        known = (np.abs(apart) > 1e-3) & (np.abs(apart) < 0.5) & (np.abs(growth) < 5)
        self.growth[of[known]] = growth[known]
        self.loss[of], self.gradient[of] = sums.loss[of], sums.score[of]
        self.curvature[of] = sums.curvature[of]
        self.score_norm[of] = np.sqrt(sums.squares[of])

    def _newton_step(self, here: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Step in log b; the curvature is b² d² loss / d b²."""
        gradient, curvature, growth = (
            values[of] for values in (self.gradient, self.curvature, self.growth)
        )
        if self.penalty is not None:
            # The full second derivative, but never less than a tenth of its safe part.
            strength = self.penalty.strength[of]
            safe = curvature + strength
            curvature = np.maximum(safe + gradient, 0.1 * safe)
            gradient = gradient + strength * (here - self.penalty.center)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.where(gradient == 0, 0.0, -gradient / curvature)
            # Where the curvature follows its power law, this is the minimum.
            follows = (growth != 0) & (np.abs(growth * step) < 0.5)
            if self.penalty is not None:
                return step
            return np.where(follows, np.log1p(growth * step) / growth, step)


# More logits than this are read in single precision, whatever they are given in.
MANY = 2**22
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
    evaluate : one pass over all rows. dtype : what T is wanted in.
    """

    totals: Totals
    rough: Evaluate | None
    evaluate: Evaluate
    dtype: type[np.floating]


def solve(
    problem: TemperatureProblem,
    penalty: Penalty | None = None,
    start: np.ndarray | None = None,
) -> Solution:
    """Temperatures of all groups, from sums over their rows alone."""
    totals = problem.totals
    status = _existence(totals, penalised=penalty is not None)
    wanted = status == Status.CONVERGED
    spread = totals.typical_spread()
    middle = -np.log(np.where(spread > 0, spread, 1.0))
    limits = middle - np.log(BOUND), middle + np.log(BOUND)
    search = _Search(middle + 1.0 if start is None else -start, limits, penalty)
    double, inexact = partial(problem.evaluate, dtype=np.float64), wanted
    if np.all(np.abs(middle) < _LOG_LARGE):
        inexact = _search_cheaply(search, problem, wanted)
    search.run(double, inexact, LAST_STEP[np.float64])
    # At the hottest allowed T masked classes have no part: the loss may fall from there
    # all the way to T = infinity, by the gradient at b = 0 that masks would hide.
    hottest = search.log_inverse <= limits[0]
    worse = hottest & (search.gradient >= search.curvature)
    beyond = np.where(worse, str(Status.WORSE_THAN_UNIFORM), str(Status.AT_BOUND))
    status = np.where(wanted & search.at_bound, beyond, status)
    neutral = 0.0 if penalty is None else penalty.center
    ends = {
        Status.WORSE_THAN_UNIFORM: limits[0],
        Status.PERFECTLY_SEPARATED: limits[1],
        Status.CONSTANT_LOGITS: neutral,
        Status.TOO_FEW_SAMPLES: neutral,
    }
    at_end = [status == end for end in ends]
    log_inverse = np.select(at_end, list(ends.values()), search.log_inverse)
    nll, missing = search.loss, np.isnan(search.loss)
    if missing.any():  # of groups that were never searched
        nll = np.where(missing, double(log_inverse, missing).loss, nll)
    with np.errstate(over="ignore"):  # a loss that is all but flat
        error = search.score_norm / positive(search.curvature)
    error[status != Status.CONVERGED] = np.nan
    return Solution(np.exp(-log_inverse), status, nll, totals.n_samples, error)


def solve_temperatures(
    rows: Rows,
    codes: np.ndarray,
    weights: np.ndarray | None = None,
    n_groups: int | None = None,
    penalty: Penalty | None = None,
    start: np.ndarray | None = None,
) -> Solution:
    """`fit_temperature` on checked arrays, optionally penalised to a common value.

    start : (g,) log temperatures that the search begins with, if they are known.
    """
    count = int(codes.max()) + 1 if n_groups is None else n_groups
    mass = np.bincount(codes, weights, minlength=count).astype(np.float64)
    share = np.where(mass > 0, 1 / positive(mass), 0.0)[codes]
    groups = Groups(codes, share if weights is None else weights * share, count)
    totals = group_totals(rows, groups)
    strides = warm_start_strides(totals.n_samples)
    rough = None
    if strides is not None and start is None:
        some = strided_rows(codes, strides)
        part = Groups(codes[some], groups.share[some], count)
        rough = partial(group_sums, rows.take(some), part, dtype=np.float32)
    evaluate = partial(group_sums, rows, groups)
    dtype = solving_dtype(rows.whole, len(rows))
    return solve(TemperatureProblem(totals, rough, evaluate, dtype), penalty, start)


def solving_dtype(logits: Any, n_rows: int) -> type[np.floating]:
    """What T is wanted in.

    Few numbers cost next to nothing in double precision. Of many, single precision
    finds nine digits of T, where chance leaves three or four.
    """
    size = n_rows * logits.shape[1]
    if size <= ELEMENTS_PER_BLOCK:
        return np.float64
    return np.float32 if size > MANY else computing_dtype(logits)


def _existence(totals: Totals, *, penalised: bool) -> np.ndarray:
    """Status of each group before any iteration; `converged` means: worth solving."""
    status = np.full(len(totals.mass), str(Status.CONVERGED), dtype="<U19")
    if not penalised:  # a penalty towards a finite value always leaves a minimum
        status[totals.slope_at_zero >= 0] = Status.WORSE_THAN_UNIFORM
        status[totals.slope_at_infinity <= 0] = Status.PERFECTLY_SEPARATED
    status[totals.varied <= 0] = Status.CONSTANT_LOGITS
    status[totals.mass <= 0] = Status.TOO_FEW_SAMPLES
    return status


def _search_cheaply(
    search: _Search, problem: TemperatureProblem, wanted: np.ndarray
) -> np.ndarray:
    """Search a subsample, then in single precision; return where that is not enough."""
    if problem.rough is not None and search.penalty is None:
        first = search.log_inverse.copy()
        search.run(problem.rough, wanted, LAST_ROUGH_STEP)
        # Few rows may lack a minimum that all rows together have.
        search.log_inverse = np.where(search.at_bound, first, search.log_inverse)
    single = partial(problem.evaluate, dtype=np.float32)
    if problem.dtype is not np.float32:
        search.run(single, wanted, LAST_ROUGH_STEP)
        return wanted
    search.run(single, wanted, LAST_STEP[np.float32])
    size = problem.totals.slope_at_infinity * np.exp(search.log_inverse)
    return wanted & ~search.at_bound & (size > LOPSIDED * search.curvature)


def positive(values: np.ndarray) -> np.ndarray:
    """`values`, with one in place of zeros and NaN, to divide by."""
    return np.where(values > 0, values, 1.0)
