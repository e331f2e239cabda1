"""Fits that shrink a log-linear temperature towards the temperature of the set."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.domains import SMALLEST_DOMAIN, leave_one_out
from coolhead.calibrators.shift_aware.loglinear import (
    LogLinearProblem,
    fit_log_linear,
    fit_path,
)
from coolhead.numerics.groups import strided_rows, warm_start_strides
from coolhead.numerics.moments import row_moments
from coolhead.numerics.solution import Solution, Status
from coolhead.numerics.temperature import solve_temperatures

RANGE_MARGIN = 0.5
ROWS_PER_DOMAIN = 500


class TemperatureRange(NamedTuple):
    """Log temperature of all domains together, and the range that they support."""

    log_temperature: float
    lowest: float
    highest: float
    status: str


def find_range(
    data: CalibrationData, row_weights: np.ndarray, each: Solution | None = None
) -> TemperatureRange:
    """Set-level temperature, and those of the domains widened by a margin.

    each : temperatures of the domains, if they are known.

    Domains too small to have a temperature of their own do not widen the range. A
    domain without a single mistake asks for T = 0, which no finite sample can support;
    it counts as T = 1.
    """
    codes = np.zeros_like(data.domains.codes)
    each = data.domain_temperatures() if each is None else each
    whole = solve_temperatures(data.rows, codes, row_weights, start=each.middle())
    solved = np.log(np.concatenate([whole.temperature, each.temperature]))
    status = np.concatenate([whole.status, each.status])
    solved[status == Status.PERFECTLY_SEPARATED] = 0.0
    used = (status != Status.TOO_FEW_SAMPLES) & (
        np.concatenate([[SMALLEST_DOMAIN], each.n_samples]) >= SMALLEST_DOMAIN
    )
    solved = solved[used]
    return TemperatureRange(
        float(solved[0]),
        float(solved.min() - RANGE_MARGIN),
        float(solved.max() + RANGE_MARGIN),
        str(whole.status[0]),
    )


def fit_weights(
    data: CalibrationData,
    design: np.ndarray,
    row_weights: np.ndarray,
    penalty: np.ndarray,
    supported: TemperatureRange,
) -> np.ndarray:
    """Intercept and slopes, (1 + p,).

    penalty : (1 + p,) prior rows per column; n effective rows weigh n / penalty as much
        as the wish for a slope of zero, so scarce data stays at the set-level T.
    """
    problem = _problem(data, design, row_weights, supported)._replace(
        penalty=penalty * np.square(row_weights).sum()
    )
    start, codes = problem.prior, data.domains.codes
    strides = warm_start_strides(np.bincount(codes))
    if strides is not None:
        start = fit_log_linear(problem.take(strided_rows(codes, strides)), start)
    return fit_log_linear(problem, start)


def _problem(
    data: CalibrationData,
    design: np.ndarray,
    row_weights: np.ndarray,
    supported: TemperatureRange,
) -> LogLinearProblem:
    """Still without a penalty; its wish is the set-level temperature and no slopes."""
    none = np.zeros(design.shape[1])
    prior = none.copy()
    prior[0] = supported.log_temperature
    limits = supported.lowest, supported.highest
    return LogLinearProblem(data.rows, design, row_weights, none, prior, limits)


def left_out_losses(
    data: CalibrationData,
    design: np.ndarray,
    row_weights: np.ndarray,
    penalties: list[np.ndarray],
) -> np.ndarray:
    """Mean loss of each left-out domain under each penalty, (penalties, domains).

    At most 500 rows of a domain are looked at: the choice is between a few values.
    """
    kept = np.flatnonzero(thin_domains(data.domains.codes))
    thin, design, row_weights = data.take(kept), design[kept], row_weights[kept]
    losses = []
    for fold in leave_one_out(data.domains):
        train = np.flatnonzero(fold.inside[kept])
        test = np.flatnonzero(fold.outside[kept])
        inside, own = thin.take(train), row_weights[train] / row_weights[train].sum()
        there = np.isin(data.domains.names, inside.domains.names)
        supported = find_range(inside, own, data.domain_temperatures().of(there))
        problem = _problem(inside, design[train], own, supported)
        scale = np.square(own).sum()
        path = fit_path(problem, [scale * each for each in penalties])
        lines = [np.clip(design[test] @ weights, *problem.limits) for weights in path]
        found = [row_moments(thin.rows, np.exp(-line), test).loss for line in lines]
        losses.append(np.average(found, axis=1, weights=row_weights[test]))
    return np.array(losses).T


def thin_domains(codes: np.ndarray) -> np.ndarray:
    """(n,) True for at most 500 evenly spaced rows of each domain."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    rank = np.empty(len(codes), np.intp)
    rank[order] = np.arange(len(codes)) - (np.cumsum(sizes) - sizes)[codes[order]]
    stride = -(-sizes // ROWS_PER_DOMAIN)
    return rank % np.maximum(stride, 1)[codes] == 0


def prefer(default: int, losses: np.ndarray) -> int:
    """The row of smallest mean loss, if clearly better than `default`.

    losses : (candidates, domains); differences are paired by domain. Clearly means at
        the 5 % level of a t test: with two domains, standard errors are worth little.
    """
    best = int(np.argmin(losses.mean(axis=1)))
    gain = losses[default] - losses[best]
    if len(gain) < 2:
        return default
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return best if gain.mean() > stdtrit(len(gain) - 1, 0.95) * error else default
