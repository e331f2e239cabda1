"""The search for the temperatures of any number of groups, from sums over their rows.

In the inverse temperature b = 1/T the loss is convex, and two averages that need no
iteration decide whether it has a minimum: its slope at b = 0 and at b = infinity.
"""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.groups import Evaluate, Sums, Totals
from coolhead.numerics.newton import Minimum, Penalty, minimise, restarted, unsearched
from coolhead.numerics.solution import Solution, Status

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
