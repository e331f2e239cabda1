"""log T(x) as a linear function of descriptors, fitted directly on the loss."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import (
    SMALLEST_DOMAIN,
    CalibrationData,
    canonical_order,
    leave_one_out,
)
from coolhead.calibrators.descriptors import (
    DEFAULT,
    Descriptor,
    TrainingReference,
    describe,
    describe_reference,
)
from coolhead.calibrators.parameters import Count, NotNegative, Seed, parameters
from coolhead.numerics.moments import Rows, row_moments
from coolhead.numerics.solver import (
    Solution,
    Status,
    solve_temperatures,
    strided_rows,
    warm_start_strides,
)

LARGEST_STEP = 2.0
MAX_STEPS = 40
CLAMPED_SHARE = 0.005
# Newton's last step, too small to need a look at where it leads; and too small to
# change a choice between two fits.
SURE_GAIN, FAIR_GAIN = 1e-6, 1e-5


class Standard(NamedTuple):
    """Centre, scale and clamping range of each descriptor, (p,) each."""

    center: np.ndarray
    scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def design(self, columns: np.ndarray) -> np.ndarray:
        """Standardised and clamped columns after a column of ones, (n, 1 + p)."""
        design = np.ones((len(columns), 1 + columns.shape[1]))
        clamped = np.maximum((columns - self.center) / self.scale, self.lower)
        np.minimum(clamped, self.upper, out=design[:, 1:])
        return design


def standardise(columns: np.ndarray, row_weights: np.ndarray) -> Standard:
    """Weighted mean and deviation; the range holds all but 1 % of the rows.

    Clamping to that range keeps a sample beyond all calibration data at the
    temperature of the furthest samples that were seen.
    """
    center = row_weights @ columns
    scale = np.sqrt(row_weights @ np.square(columns - center))
    # Rounding leaves a tiny deviation where a column is constant.
    flat = scale <= 1e-9 * np.maximum(np.abs(center), 1e-30)
    scale = np.where(flat, 1.0, scale)
    scaled = (columns - center) / scale
    lower, upper = np.quantile(scaled, [CLAMPED_SHARE, 1 - CLAMPED_SHARE], axis=0)
    return Standard(
        center, scale, np.where(flat, 0.0, lower), np.where(flat, 0.0, upper)
    )


class LogLinearProblem(NamedTuple):
    """Penalised mean loss of log T = design @ weights.

    design : (n, 1 + p); row_weights : (n,) that sum to one; penalty : (1 + p,) of the
    squared distance to `prior`; limits : lowest and highest log T.
    """

    rows: Rows
    design: np.ndarray
    row_weights: np.ndarray
    penalty: np.ndarray
    prior: np.ndarray
    limits: tuple[float, float]

    def take(self, index: np.ndarray) -> "LogLinearProblem":
        """The problem on some of the rows."""
        weights = self.row_weights[index]
        return self._replace(
            rows=self.rows.take(index),
            design=self.design[index],
            row_weights=weights / weights.sum(),
        )


class Point(NamedTuple):
    """Mean loss at some weights, and the two curvatures of every row; no penalty."""

    weights: np.ndarray
    loss: float
    slope: np.ndarray
    bend: np.ndarray


def fit_log_linear(problem: LogLinearProblem, start: np.ndarray) -> np.ndarray:
    """Weights (1 + p,) of smallest penalised loss, by damped Newton steps."""
    return _search(problem, evaluate(problem, start), SURE_GAIN)[0]


def fit_path(
    problem: LogLinearProblem, penalties: list[np.ndarray]
) -> list[np.ndarray]:
    """Weights under one penalty after the other, precise enough to choose among them.

    What is known of the loss where one search ended serves to begin the next.
    """
    found, here = [], evaluate(problem, problem.prior)
    for penalty in penalties:
        weights, here = _search(problem._replace(penalty=penalty), here, FAIR_GAIN)
        found.append(weights)
    return found


def evaluate(problem: LogLinearProblem, weights: np.ndarray) -> Point:
    """Loss and derivatives with respect to the log temperature, in one pass."""
    log_temperature = np.clip(problem.design @ weights, *problem.limits)
    moments = row_moments(problem.rows, np.exp(-log_temperature))
    return Point(
        weights,
        float(problem.row_weights @ moments.loss),
        -problem.row_weights * moments.score,
        problem.row_weights * moments.curvature,
    )


def _search(
    problem: LogLinearProblem, here: Point, sure_gain: float
) -> tuple[np.ndarray, Point]:
    """The minimum, and the last point on the way that was looked at."""
    for _ in range(MAX_STEPS):
        gradient = _gradient(problem, here)
        step = _newton_step(problem, here, gradient)
        if -gradient @ step < sure_gain:
            return here.weights + step, here
        there = _descend(problem, here, step)
        gain = _loss(problem, here) - _loss(problem, there)
        here = there
        if gain < 1e-8:
            break
    return here.weights, here


def _loss(problem: LogLinearProblem, here: Point) -> float:
    apart = here.weights - problem.prior
    return here.loss + 0.5 * float(problem.penalty @ np.square(apart))


def _gradient(problem: LogLinearProblem, here: Point) -> np.ndarray:
    apart = here.weights - problem.prior
    return here.slope @ problem.design + problem.penalty * apart


def _newton_step(
    problem: LogLinearProblem, here: Point, gradient: np.ndarray
) -> np.ndarray:
    """Newton's step; where the loss is not convex, with its convex part only."""
    penalty = np.diag(problem.penalty + 1e-9)
    design = problem.design
    for bend in (here.bend - here.slope, here.bend):
        hessian = (design * bend[:, None]).T @ design + penalty
        try:
            np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            continue
        step = -np.linalg.solve(hessian, gradient)
        longest = np.abs(design @ step).max()
        return step * min(1.0, LARGEST_STEP / max(longest, 1e-12))
    return -gradient


def _descend(problem: LogLinearProblem, here: Point, step: np.ndarray) -> Point:
    """Halve the step until the loss does not grow; stay if it never stops growing."""
    for halvings in range(10):
        there = evaluate(problem, here.weights + step / 2**halvings)
        if _loss(problem, there) <= _loss(problem, here):
            return there
    return here


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
    """Return the mean loss of each left-out domain under each penalty.

    At most 500 rows of a domain are looked at: the choice is between a few values.
    """
    kept = np.flatnonzero(thin_domains(data.logits, data.domains.codes))
    thin, design, row_weights = data.take(kept), design[kept], row_weights[kept]
    losses = []
    for _, outside in leave_one_out(data.domains):
        train, test = (np.flatnonzero(mask[kept]) for mask in (~outside, outside))
        inside, own = thin.take(train), row_weights[train] / row_weights[train].sum()
        there = np.isin(data.domains.names, inside.domains.names)
        supported = find_range(inside, own, data.domain_temperatures().of(there))
        problem = _problem(inside, design[train], own, supported)
        scale = np.square(own).sum()
        path = fit_path(problem, [scale * each for each in penalties])
        lines = [np.clip(design[test] @ weights, *problem.limits) for weights in path]
        found = [row_moments(thin.rows, np.exp(-line), test).loss for line in lines]
        losses.append(np.average(found, axis=1, weights=row_weights[test]))
    return np.array(losses)


def thin_domains(logits: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """(n,) True for at most 500 evenly spaced rows of each domain."""
    order = canonical_order(logits, codes)
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


DEFAULT_PENALTY = 8.0
PENALTY_GRID = (2.0, 8.0, 32.0, 128.0)
# Penalty of the source's own offset, in the units of `describe`.
SOURCE_PENALTY = 10.0


@parameters
class ShiftAwareTemperature(TemperatureCalibrator):
    """log T(x) = c + w · (shift descriptors of x), fitted directly on the loss.

    Held-out rows of the source have an offset of their own, which no other row gets:
    the classifier may be more confident in its source domain in ways that no
    descriptor shows.

    Parameters
    ----------
    descriptors : names out of `descriptors.DESCRIPTORS`, or functions
        (logits, features, reference) -> (n,) or (n, p); None stands for `DEFAULT`.
    penalty : prior rows: how many samples' worth of evidence a descriptor needs before
        it counts; "auto" chooses by leaving out one calibration domain at a time.
    n_components, n_neighbours : int
        Parameters of the descriptors that use them.
    random_state : int, default=0
        Without effect since version 0.3: the sample of reference features is evenly
        spaced. Kept for calls and files of earlier versions.

    Attributes
    ----------
    coef_, intercept_ : (p,) and float, over the standardised descriptors.
    source_offset_ : float, log T of the source's rows beyond what descriptors say.
    standard_ : centre, scale and clamping range of the descriptors.
    training_reference_ : what is remembered of the reference features.
    bounds_ : lowest and highest log T that the domains support.
    penalty_ : the penalty used.
    penalty_losses_ : mean loss of each penalty on each left-out domain, if chosen.
    temperature_ : float, of all rows together, every domain counting the same.
    status_ : str, one of `Status`, followed by what was missing.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains()    # best T: 1, 1.5, 2, 3
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.ShiftAwareTemperature().fit(
    ...     seen.logits, seen.labels, features=seen.features, sample_domain=seen.domains
    ... )
    >>> round(float(cal.temperature(unseen.logits, unseen.features).mean()), 1)
    2.0
    """

    takes = ("features", "source", "reference")
    uses_features = True
    descriptors: Sequence[str | Descriptor] | None = None
    _: KW_ONLY
    penalty: NotNegative | str = "auto"
    n_components: Count = 8
    n_neighbours: Count = 5
    random_state: Seed = 0

    def _learn(self, data: CalibrationData) -> None:
        domains = data.domains
        self.training_reference_, notes = self._find_reference(data)
        row_weights = domains.row_weights(data.weights)
        columns, column_penalty = self._columns(data.rows, data.features, data.row_memo)
        self.standard_ = standardise(columns, row_weights)
        # The offset is no one's where all rows, or none, are of the source.
        of_source = domains.source_rows & ~domains.is_source.all()
        design = np.column_stack([self.standard_.design(columns), of_source])
        column_penalty = np.concatenate([[1e-4], column_penalty, [SOURCE_PENALTY]])
        self.penalty_ = self._choose_penalty(data, design, row_weights, column_penalty)
        supported = find_range(data, row_weights)
        weights = fit_weights(
            data, design, row_weights, column_penalty * self.penalty_, supported
        )
        self.intercept_, self.coef_ = float(weights[0]), weights[1:-1]
        self.source_offset_ = float(weights[-1])
        self.bounds_ = supported.lowest, supported.highest
        self.temperature_ = float(np.exp(supported.log_temperature))
        self.status_ = "; ".join([supported.status, *notes])

    def _columns(
        self, logits: np.ndarray | Rows, features: np.ndarray, known: dict | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        chosen = DEFAULT if self.descriptors is None else self.descriptors
        return describe(chosen, logits, features, self.training_reference_, known)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        columns, _ = self._columns(logits, features)
        line = self.standard_.design(columns)[:, 1:] @ self.coef_ + self.intercept_
        lowest, highest = self.bounds_
        return np.exp(np.minimum(np.maximum(line, lowest), highest))

    def _find_reference(
        self, data: CalibrationData
    ) -> tuple[TrainingReference, list[str]]:
        """What stands for the training data, and what is missing of it."""
        notes = []
        rows, n_neighbours = data.domains.source_rows, self.n_neighbours
        if not rows.any():
            notes.append("no source_domain")
            rows = np.ones(len(data), bool)
        reference = data.reference
        if reference is None:
            notes.append("no reference_features: distance to the calibration data")
            reference = data.features[rows]
            n_neighbours += 1  # a calibration row is its own nearest neighbour
        described = describe_reference(
            reference,
            n_components=self.n_components,
            n_neighbours=n_neighbours,
            reach=data.rows.reach,
        )
        return described, notes

    def _choose_penalty(
        self,
        data: CalibrationData,
        design: np.ndarray,
        row_weights: np.ndarray,
        column_penalty: np.ndarray,
    ) -> float:
        """Return the penalty given, or the one of smallest loss on left-out domains."""
        if self.penalty != "auto":
            if isinstance(self.penalty, str) or not self.penalty >= 0:
                raise ValueError(
                    f"penalty is {self.penalty!r}; wanted a number >= 0 or 'auto'"
                )
            return float(self.penalty)
        penalties = [column_penalty * penalty for penalty in PENALTY_GRID]
        losses = left_out_losses(data, design, row_weights, penalties)
        self.penalty_losses_ = np.reshape(losses, (-1, len(PENALTY_GRID))).T
        return self._preferred(self.penalty_losses_)

    def penalties_without_each(self) -> list[float]:
        """Return, for each left-out domain, the penalty that the others prefer."""
        losses = self.penalty_losses_
        return [
            self._preferred(np.delete(losses, number, axis=1))
            for number in range(losses.shape[1])
        ]

    def _preferred(self, losses: np.ndarray) -> float:
        if not losses.size:
            return DEFAULT_PENALTY
        return PENALTY_GRID[prefer(PENALTY_GRID.index(DEFAULT_PENALTY), losses)]
