"""The temperature of any number of groups, in the same passes over the logits.

In the inverse temperature b = 1/T the loss is convex, and two averages that need no
iteration decide whether it has a minimum: its slope at b = 0 and at b = infinity.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.blocks import ELEMENTS_PER_BLOCK, computing_dtype
from coolhead.numerics.checks import (
    as_logits,
    check_domains,
    check_labels,
    check_weights,
)
from coolhead.numerics.class_names import column_names
from coolhead.numerics.groups import (
    Evaluate,
    Groups,
    Sums,
    Totals,
    group_sums,
    group_totals,
    strided_rows,
    warm_start_strides,
)
from coolhead.numerics.moments import Rows, summarise_rows
from coolhead.numerics.newton import Minimum, Penalty, minimise, restarted, unsearched

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


def fit_temperature(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> TemperatureFit:
    """Temperature that minimises the negative log-likelihood of softmax(logits / T).

    Parameters
    ----------
    logits : (n, k), or (n,) scores of a binary classifier, taken as [0, s].
    labels : (n,) integers in 0..k-1, or names of classes: the columns of a frame or,
        of an array, as scikit-learn sorts them.
    groups : (n,) optional. Each distinct value gets its own temperature; all are
        solved together.
    sample_weight : (n,) optional, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.array([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
    >>> fit = fit_temperature(logits, [0, 0, 0, 1])     # 75 % right: 4 / log 3
    >>> round(fit.temperature, 6), fit.status
    (3.640957, 'converged')
    """
    array = as_logits(logits)
    n_rows, n_classes = array.shape
    classes = check_labels(labels, n_classes, n_rows, column_names(logits))
    weights = check_weights(sample_weight, n_rows)
    rows = summarise_rows(array, classes, scores=np.ndim(logits) == 1)
    names, codes = _group_codes(groups, n_rows)
    solution = solve_temperatures(rows, codes, weights)
    return as_fit(solution, names)


def as_fit(solution: Solution, names: np.ndarray | None) -> TemperatureFit:
    """Arrays for named groups; scalars where all rows were one unnamed group."""
    if names is not None:
        return TemperatureFit(solution.temperature, names, *solution[1:])
    temperature, status, nll, n_samples, error = (column[0] for column in solution)
    return TemperatureFit(
        float(temperature), None, str(status), float(nll), int(n_samples), float(error)
    )


class TemperatureProblem(NamedTuple):
    """All that the solver knows of the data; it never sees a row.

    totals : of every group. rough : one pass over a small part of the rows, or None.
    single, double : one pass over all rows in that precision. dtype : of the result.
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
    groups = _weighted_groups(codes, weights, n_groups)
    totals = group_totals(rows, groups)
    strides = warm_start_strides(totals.n_samples)
    rough = None
    if strides is not None and start is None:
        some = strided_rows(codes, strides)
        rough = partial(group_sums, rows, groups, some, dtype=np.float32)
    single = partial(group_sums, rows, groups, None, dtype=np.float32)
    double = partial(group_sums, rows, groups, None, dtype=np.float64)
    dtype = solving_dtype(rows.logits, len(rows.logits))
    problem = TemperatureProblem(totals, rough, single, double, dtype)
    return solve(problem, penalty, start)


def solving_dtype(logits: Any, n_rows: int) -> type[np.floating]:
    """What T is wanted in: few numbers cost next to nothing in double precision."""
    few = n_rows * logits.shape[1] <= ELEMENTS_PER_BLOCK
    return np.float64 if few else computing_dtype(logits)


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
    end = _search(problem, first, limits, wanted, penalty)
    status = np.where(wanted & end.at_bound, _beyond(end, limits), status)
    log_inverse = _where_no_minimum(status, end.log_inverse, limits, penalty)
    nll = _complete_loss(problem.evaluate, end.loss, log_inverse)
    error = np.where(
        status == Status.CONVERGED, end.score_norm / _positive(end.bend), np.nan
    )
    return Solution(np.exp(-log_inverse), status, nll, totals.n_samples, error)


def _group_codes(groups: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray]:
    if groups is None:
        return None, np.zeros(n_rows, np.intp)
    array = check_domains(groups, n_rows, "groups")
    names, codes = np.unique(array, return_inverse=True)
    return names, codes


def _weighted_groups(
    codes: np.ndarray, weights: np.ndarray | None, n_groups: int | None
) -> Groups:
    count = int(codes.max()) + 1 if n_groups is None else n_groups
    mass = np.bincount(codes, weights, minlength=count).astype(np.float64)
    per_row = np.where(mass > 0, 1 / _positive(mass), 0.0)[codes]
    return Groups(codes, per_row if weights is None else weights * per_row, count)


def _positive(values: np.ndarray) -> np.ndarray:
    """`values`, with one in place of zeros and NaN, to divide by."""
    return np.where(values > 0, values, 1.0)


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
    middle = (limits[0] + limits[1]) / 2
    moderate = np.all((middle > -_LOG_LARGE) & (middle < _LOG_LARGE) | ~wanted)
    end = unsearched(start)
    if problem.rough is not None and penalty is None and moderate:
        rough = minimise(problem.rough, end, limits, wanted, LAST_ROUGH_STEP)
        # Few rows may lack a minimum that all rows together have.
        end = restarted(rough, np.where(rough.at_bound, start, rough.log_inverse))
    if problem.dtype is np.float32:
        last_step = LAST_STEP[np.float32]
        end = minimise(problem.single, end, limits, wanted, last_step, penalty)
        size = problem.totals.slope_at_infinity * np.exp(end.log_inverse)
        wanted = wanted & ~end.at_bound & (size > LOPSIDED * end.bend)
    elif moderate:
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
