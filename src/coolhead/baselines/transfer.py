"""Methods that weight labelled rows so that they resemble the target.

They need unlabelled data of the target, which domain generalisation does not have.
"""

import warnings
from dataclasses import KW_ONLY, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import approx_fprime, brentq, minimize, minimize_scalar

from coolhead.calibrators.base import TemperatureCalibrator, remember_quality
from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Count, Seed, Size, parameters
from coolhead.calibrators.temperature import set_level
from coolhead.numerics.checks import check_choice
from coolhead.numerics.moments import typical_spread
from coolhead.numerics.search import temperature_slopes
from coolhead.numerics.softmax import brier_rows, confidence
from coolhead.numerics.solver import BOUND, Status
from coolhead.numerics.temperature import fit_temperature
from coolhead.shift.ratio import FEW_SAMPLES, effective_sample_size


@parameters
class TransferCalibrator(TemperatureCalibrator):
    """A temperature from labelled rows and unlabelled rows of the target.

    Fit it on labelled source rows (as published) or on the calibration domains.

    Parameters
    ----------
    estimator : {"discriminator", "published"}, default="discriminator"
        See `coolhead.shift.density_ratio`; "published" gives the weights of the
        released code of TransCal and CPCS, neither cut nor scaled.
    max_weight : float, default=50
        Larger weights are cut.
    random_state : int, default=0
        Seed of the density ratio.

    Attributes
    ----------
    temperature_ : float
    status_, nll_, nll_uncalibrated_
        Of the fit set, without importance weights.
    density_ratio_ : coolhead.shift.DensityRatio
        With its `unreliable` flag.
    effective_sample_size_ : float
        Of the weights used.
    """

    takes = ("features", "reference", "target")
    needs = ("features", "target")
    reads_target_logits = False

    _: KW_ONLY
    estimator: str = "discriminator"
    max_weight: float = 50.0
    random_state: Seed = 0

    def fit(
        self,
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        features: ArrayLike | None = None,
        target_features: ArrayLike | None = None,
        target_logits: ArrayLike | None = None,
        reference_features: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: Any = None,
    ) -> Self:
        """Fit on labelled rows, weighted to resemble the target.

        Parameters
        ----------
        logits : array-like of shape (n_samples, n_classes)
        labels : array-like of shape (n_samples,)
        features : array-like of shape (n_samples, n_features)
        target_features : array-like of shape (n_target, n_features)
            Of unlabelled target rows.
        target_logits : array-like of shape (n_target, n_classes), default=None
            Read by TransCal alone.
        reference_features : array-like of shape (n_reference, n_features), default=None
            Of source training rows.
        sample_domain, sample_weight : array-like of shape (n_samples,), default=None
        classes : sequence, default=None
            Names of the classes in the order of the columns.

        Returns
        -------
        self
        """
        data = CalibrationData.of(
            logits,
            labels,
            features=features,
            sample_domain=sample_domain,
            reference_features=reference_features,
            sample_weight=sample_weight,
            target_features=target_features,
            target_logits=target_logits if self.reads_target_logits else None,
            classes=classes,
        )
        return self.fit_data(data)

    def _weigh(self, data: CalibrationData) -> np.ndarray:
        """Weights (n,) of the labelled rows for a fit under them."""
        weights = self._resemblance(data)
        self.effective_sample_size_ = count_effective(type(self).__name__, weights)
        return weights

    def _resemblance(self, data: CalibrationData) -> np.ndarray:
        """How much each row (n,) resembles the target, times its own weight."""
        self.density_ratio_ = data.density_ratio(
            estimator=self.estimator,
            max_weight=self.max_weight,
            random_state=self.random_state,
        )
        weights = self.density_ratio_.weights
        return weights if data.weights is None else weights * data.weights


def count_effective(method: str, weights: np.ndarray) -> float:
    """Effective sample size of the weights of a fit; fewer than 30 are warned of."""
    size = effective_sample_size(weights)
    if size < FEW_SAMPLES:
        warnings.warn(
            f"{method}: the importance weights leave {size:.1f} effective samples of "
            f"{len(weights)}, fewer than {FEW_SAMPLES}; a handful of rows decides this "
            "fit",
            stacklevel=6,
        )
    return size


class WeightedTemperature(TransferCalibrator):
    """One temperature by importance-weighted likelihood (WTS).

    Parameters and attributes are those of `TransferCalibrator`.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.WeightedTemperature().fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ... )
    >>> cal.temperature_ > 1.5    # as in the target's site
    True
    """

    def _learn(self, data: CalibrationData) -> None:
        solution = set_level(data, self._weigh(data))
        self.temperature_ = float(solution.temperature[0])
        remember_quality(self, data, self.temperature_, str(solution.status[0]))


@parameters
class WeightedClusterTemperature(TransferCalibrator):
    """The temperature of the nearest cluster, with importance weights inside each.

    The mass of a cluster cancels: only the shift inside clusters is weighted away.

    Parameters
    ----------
    n_clusters, n_init, min_cluster_size : int
        See `NearestClusterTemperature`.
    estimator : str, default="discriminator"
        See `TransferCalibrator`.
    max_weight, random_state : float, int
        See `TransferCalibrator`.

    Attributes
    ----------
    cluster_temperatures_ : ndarray of shape (n_clusters,)
    cluster_status_ : ndarray of shape (n_clusters,)
    clusters_, n_fallbacks_
        Others as `TransferCalibrator`.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.WeightedClusterTemperature(n_clusters=3).fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ... )
    >>> cal.cluster_temperatures_.shape
    (3,)
    """

    uses_features = True

    n_clusters: Count = 8
    _: KW_ONLY
    n_init: Count = 1
    min_cluster_size: Size = 20

    def _learn(self, data: CalibrationData) -> None:
        weighted = replace(data, weights=self._weigh(data))
        nearest = NearestClusterTemperature(
            self.n_clusters,
            n_init=self.n_init,
            min_cluster_size=self.min_cluster_size,
            random_state=self.random_state,
        ).fit_part(weighted)
        self.clusters_, self.temperature_ = nearest.clusters_, nearest.temperature_
        self.cluster_temperatures_ = nearest.cluster_temperatures_
        self.cluster_status_, self.n_fallbacks_ = nearest.status_, nearest.n_fallbacks_
        temperature = self._temperature(data.logits, data.features)
        status = str(weighted.set_temperature().status[0])
        remember_quality(self, data, temperature, status)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.cluster_temperatures_[self.clusters_.assign(features)[0]]


@parameters
class ChosenDomainsTemperature(TransferCalibrator):
    """One temperature from the calibration domains that resemble the target.

    The mean importance weight of a domain says how much it resembles the target.
    Domains below `keep` times the largest mean are left out; the rows of the others
    count alike.

    Parameters
    ----------
    keep : float, default=0.5
        In [0, 1]; 0 keeps all domains.
    estimator : str, default="discriminator"
        See `TransferCalibrator`.
    max_weight, random_state : float, int
        See `TransferCalibrator`.

    Attributes
    ----------
    temperature_ : float
    domain_weights_ : dict of str to float
        Mean importance weight of each domain.
    kept_domains_ : list of str

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.ChosenDomainsTemperature().fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     sample_domain=seen.domains,
    ...     target_features=target.features,
    ... )
    >>> cal.kept_domains_    # the target is more of the second
    ['site-1']
    """

    _: KW_ONLY
    keep: float = 0.5

    def _learn(self, data: CalibrationData) -> None:
        if not 0 <= self.keep <= 1:
            raise ValueError(f"keep is {self.keep}; wanted a number in [0, 1]")
        weights = self._resemblance(data)
        codes, names = data.domains.codes, data.domains.names
        means = np.bincount(codes, weights) / np.bincount(codes)
        kept = means >= self.keep * means.max()
        self.domain_weights_ = dict(zip(map(str, names), means.tolist(), strict=True))
        self.kept_domains_ = [str(name) for name in names[kept]]
        solution = data.take(kept[codes]).set_temperature()
        self.temperature_ = float(solution.temperature[0])
        remember_quality(self, data, self.temperature_, str(solution.status[0]))


class KnownErrors(NamedTuple):
    """Weights and errors (n,) of labelled rows, and their calibrated confidence."""

    weights: np.ndarray
    errors: np.ndarray
    source_confidence: float

    def target_error(self, power: float) -> float:
        """Error on the target from weighted errors with serial control variates.

        It may leave [0, 1]: E[w^λ] = 1 does not hold for λ < 1.
        """
        weights, right = self.weights**power, 1 - self.errors
        weighted = weights * self.errors
        first = _coefficient(weighted, weights)
        second = _coefficient(weighted + first * (weights - 1), right)
        return float(
            weighted.mean()
            + first * (weights.mean() - 1)
            + second * (right.mean() - self.source_confidence)
        )

    def target_accuracy(self, power: float) -> float:
        """1 - `target_error`, cut to [0, 1]."""
        return float(np.clip(1 - self.target_error(power), 0.0, 1.0))


def _coefficient(values: np.ndarray, control: np.ndarray) -> float:
    """-Cov(values, control)/Var(control), and 0 where the control does not vary."""
    if len(control) < 2:
        return 0.0
    covariance = np.cov(values, control)
    varies = covariance[1, 1] > 1e-12 * (1 + np.mean(control) ** 2)
    return float(-covariance[0, 1] / covariance[1, 1]) if varies else 0.0


# Steps of 0.18 in log T: no minimum of the Brier score is as narrow.
GRID_POINTS, REFINED_MINIMA = 64, 3


class CPCS(TransferCalibrator):
    """One temperature by importance-weighted Brier score.

    Parameters are those of `TransferCalibrator`.

    Attributes
    ----------
    brier_ : float
        Weighted Brier score at that temperature, summed over classes. Others as
        `TransferCalibrator`.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.CPCS().fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ... )
    >>> cal.temperature_ > 1.5    # as in the target's site
    True
    """

    def _learn(self, data: CalibrationData) -> None:
        weights = self._weigh(data)
        spread = data.rows.typical_spread(weights)
        self.temperature_, self.brier_, status = minimise_brier(
            data.logits, data.labels, weights, spread
        )
        remember_quality(self, data, self.temperature_, status)


def minimise_brier(
    logits: np.ndarray, labels: np.ndarray, weights: np.ndarray, spread: float
) -> tuple[float, float, str]:
    """Return T in [spread/300, 300 spread], the weighted Brier score, the status."""
    if spread <= 0:
        score = float(np.average(brier_rows(logits, labels, 1.0), weights=weights))
        return 1.0, score, Status.CONSTANT_LOGITS

    def score_at(position: float) -> float:
        rows = brier_rows(logits, labels, np.exp(position))
        return float(np.average(rows, weights=weights))

    middle, reach = np.log(spread), np.log(BOUND)
    grid = np.linspace(middle - reach, middle + reach, GRID_POINTS)
    scores = np.array([score_at(position) for position in grid])
    best = (scores.min(), grid[scores.argmin()])
    inner = scores[1:-1]
    local = np.flatnonzero((inner <= scores[:-2]) & (inner <= scores[2:])) + 1
    for index in local[np.argsort(scores[local])][:REFINED_MINIMA]:
        around = grid[index - 1], grid[index + 1]
        found: Any = minimize_scalar(
            score_at, bounds=around, method="bounded", options={"xatol": 1e-7}
        )
        best = min(best, (found.fun, found.x))
    inside = grid[0] < best[1] < grid[-1]
    status = Status.CONVERGED if inside else Status.AT_BOUND
    return float(np.exp(best[1])), float(best[0]), status


PUBLISHED_START = (2.0, 0.5)


@parameters
class TransCal(TransferCalibrator):
    """One temperature whose mean target confidence equals the estimated accuracy.

    Parameters
    ----------
    solver : {"published", "root"}, default="published"
        "published" minimises over temperature >= 1 and weight power in [0, 1] from the
        published start (2, 0.5); "root" keeps `weight_power` and finds the one
        temperature, below or above 1, that fits.
    weight_power : float, default=0.5
        λ of the "root" solver, in [0, 1].
    estimator : str, default="discriminator"
        See `TransferCalibrator`.
    max_weight, random_state : float, int
        See `TransferCalibrator`.

    Attributes
    ----------
    temperature_ : float
    weight_power_ : float
        λ at the end.
    target_accuracy_ : float
        Estimated accuracy on the target, cut to [0, 1].
    mismatch_ : float
        |mean target confidence - estimated accuracy| that is left. Others as
        `TransferCalibrator`.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.TransCal().fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ...     target_logits=target.logits,
    ... )
    >>> cal.temperature_ >= 1, 0 <= cal.target_accuracy_ <= 1
    (True, True)
    """

    reads_target_logits = True

    _: KW_ONLY
    solver: str = "published"
    weight_power: float = 0.5

    def _learn(self, data: CalibrationData) -> None:
        check_choice(self.solver, "solver", "published", "root")
        if not 0 <= self.weight_power <= 1:
            raise ValueError(
                f"weight_power is {self.weight_power}; wanted a number in [0, 1]"
            )
        target_logits = None if data.target is None else data.target.logits
        if target_logits is None:
            raise ValueError(
                "target_logits is missing: TransCal needs unlabelled target data; "
                f"wanted an array (m, {self.n_classes_})"
            )
        weights = self._weigh(data)
        source = fit_temperature(data.logits, data.labels).temperature
        largest, predicted = confidence(data.logits, source)
        errors = (predicted != data.labels).astype(float)
        known = KnownErrors(weights, errors, float(largest.mean(dtype=np.float64)))
        if self.solver == "published":
            fitted = published_solution(target_logits, known)
        else:
            fitted = root_solution(target_logits, known, self.weight_power)
        self.temperature_, self.weight_power_, status = fitted
        self.target_accuracy_ = known.target_accuracy(self.weight_power_)
        reached = mean_confidence(target_logits, self.temperature_)
        self.mismatch_ = abs(reached - self.target_accuracy_)
        remember_quality(self, data, self.temperature_, status)


def mean_confidence(logits: np.ndarray, temperature: float) -> float:
    """Mean of the largest probabilities; it falls as the temperature rises."""
    return float(confidence(logits, temperature)[0].mean(dtype=np.float64))


def confidence_slope(
    logits: np.ndarray, top: np.ndarray, temperature: float
) -> tuple[float, float]:
    """Mean confidence and its derivative by the temperature.

    The derivative is exact: differences of float32 confidences would be noise.
    """
    losses, slopes = temperature_slopes(logits, top, np.full(len(top), temperature))
    largest = np.exp(-losses)
    return float(largest.mean()), float(-np.mean(largest * slopes) / temperature)


def published_solution(
    target_logits: np.ndarray, known: KnownErrors
) -> tuple[float, float, str]:
    """Return (T, λ, status) by SLSQP from (2, 0.5) with T >= 1 and 0 <= λ <= 1."""
    spread = typical_spread(target_logits)
    if spread <= 0:
        return 1.0, PUBLISHED_START[1], Status.CONSTANT_LOGITS
    top = target_logits.argmax(axis=1)

    def mismatch(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        temperature, power = parameters
        reached, slope = confidence_slope(target_logits, top, temperature)
        gap = reached - 1 + known.target_error(power)
        by_power: Any = approx_fprime(
            [power], lambda value: known.target_error(value[0])
        )
        return abs(gap), np.sign(gap) * np.array([slope, by_power[0]])

    found = minimize(
        mismatch,
        PUBLISHED_START,
        jac=True,
        method="SLSQP",
        bounds=((1.0, None), (0.0, 1.0)),
    )
    temperature, power = float(found.x[0]), float(found.x[1])
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        return 1.0, PUBLISHED_START[1], Status.FALLBACK
    power = float(np.clip(power, 0.0, 1.0))
    if temperature <= 1 + 1e-9:
        return 1.0, power, Status.AT_BOUND
    if temperature > BOUND * spread:
        # Even almost uniform predictions are above the estimated accuracy.
        return temperature, power, Status.AT_BOUND
    return temperature, power, Status.CONVERGED


def root_solution(
    target_logits: np.ndarray, known: KnownErrors, power: float
) -> tuple[float, float, str]:
    """Return (T, λ, status) with λ given and T by root finding."""
    wanted = known.target_accuracy(power)
    spread = typical_spread(target_logits)
    if spread <= 0:
        return 1.0, power, Status.CONSTANT_LOGITS
    low, high = np.log(spread) - np.log(BOUND), np.log(spread) + np.log(BOUND)

    def excess(position: float) -> float:
        return mean_confidence(target_logits, float(np.exp(position))) - wanted

    if excess(low) <= 0:
        return float(np.exp(low)), power, Status.AT_BOUND
    if excess(high) >= 0:
        return float(np.exp(high)), power, Status.AT_BOUND
    root: Any = brentq(excess, low, high, xtol=1e-9)
    return float(np.exp(root)), power, Status.CONVERGED
