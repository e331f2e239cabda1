"""The line of least norm through a few points in many dimensions."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Count, NotNegative, Seed, Size, parameters
from coolhead.calibrators.temperature import set_level
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice, check_features
from coolhead.numerics.solver import Penalty, Solution, Status
from coolhead.numerics.temperature import solve_temperatures
from coolhead.shift.clusters import Partition

PENALTY_GRID = (0.0, *np.logspace(-3, 3, 13))


class Line(NamedTuple):
    """value(h) = intercept + slope · h."""

    slope: np.ndarray
    intercept: float
    penalty: float

    def at(
        self, features: np.ndarray, transform: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Values at the transformed features, (n,), block by block."""
        values = np.empty(len(features))
        for rows in row_blocks(*features.shape):
            values[rows] = transform(features[rows]) @ self.slope + self.intercept
        return values


def fit_line(centers: np.ndarray, heights: np.ndarray, penalty: float | str) -> Line:
    """Least squares with intercept; with penalty = 0 the solution of smallest norm.

    penalty : a multiple of the mean eigenvalue of the centred Gram matrix, or
        "auto" for the multiple with the smallest leave-one-out error.
    """
    if penalty == "auto":
        penalty = _leave_one_out(centers, heights)
    if not isinstance(penalty, (int, float)) or penalty < 0:
        raise ValueError(f"line_penalty is {penalty!r}; wanted a number >= 0 or 'auto'")
    middle = centers.mean(axis=0)
    centred = centers - middle
    gram = centred @ centred.T
    added = penalty * np.trace(gram) / len(gram)
    # With an intercept the Gram matrix is singular by construction; pinv also copes
    # with centres that lie on a line.
    inverse = np.linalg.pinv(gram + added * np.eye(len(gram)), hermitian=True)
    slope = centred.T @ (inverse @ (heights - heights.mean()))
    return Line(slope, float(heights.mean() - slope @ middle), float(penalty))


def _leave_one_out(centers: np.ndarray, heights: np.ndarray) -> float:
    """The penalty of PENALTY_GRID that best predicts each point from the others."""
    if len(centers) < 3:
        return 0.0
    errors = [
        sum(
            (_left_out(centers, heights, j, penalty) - heights[j]) ** 2
            for j in range(len(centers))
        )
        for penalty in PENALTY_GRID
    ]
    return float(PENALTY_GRID[int(np.argmin(errors))])


def _left_out(
    centers: np.ndarray, heights: np.ndarray, j: int, penalty: float
) -> float:
    line = fit_line(np.delete(centers, j, 0), np.delete(heights, j), penalty)
    return float(centers[j] @ line.slope + line.intercept)


FLOOR_SHARE = 0.1


class ClusterTemperatures(NamedTuple):
    """Temperatures of the clusters of one partition, and of all rows together."""

    partition: Partition
    set_level: Solution
    temperatures: np.ndarray
    status: np.ndarray
    fallback: np.ndarray


def fit_cluster_temperatures(
    data: CalibrationData, partition: Partition, min_cluster_size: int, penalty: float
) -> ClusterTemperatures:
    """Fit every cluster in the same passes; those without a minimum get T of the set.

    penalty : tau >= 0 of the penalty (tau / n_j) (log T_j - log T_set)² / 2.
    """
    whole = set_level(data, data.weights)
    count = len(partition.clusters.centers)
    sizes = np.bincount(partition.assignment, minlength=count)
    towards = penalty_towards(whole, sizes, penalty)
    solved = solve_temperatures(
        data.rows, partition.assignment, data.weights, count, towards
    )
    return with_fallback(partition, whole, solved, min_cluster_size)


def penalty_towards(
    whole: Solution, sizes: np.ndarray, penalty: float
) -> Penalty | None:
    """The penalty that draws clusters of these sizes to the set-level temperature."""
    if not 0 <= penalty < np.inf:
        raise ValueError(f"penalty is {penalty}; wanted a number >= 0")
    if penalty == 0:
        return None
    return Penalty(penalty / sizes, -np.log(float(whole.temperature[0])))


def with_fallback(
    partition: Partition, whole: Solution, solved: Solution, min_cluster_size: int
) -> ClusterTemperatures:
    """The set-level temperature for clusters that are small or have no minimum."""
    if not min_cluster_size >= 0:
        raise ValueError(f"min_cluster_size is {min_cluster_size}; wanted at least 0")
    sizes, n_rows = solved.n_samples, whole.n_samples[0]
    small = (sizes < min_cluster_size) & (sizes < n_rows)
    status = np.where(small, str(Status.TOO_FEW_SAMPLES), solved.status)
    # One cluster that holds every row is the set itself: nothing to fall back to.
    fallback = (status != Status.CONVERGED) & (sizes < n_rows)
    temperatures = np.where(fallback, whole.temperature[0], solved.temperature)
    return ClusterTemperatures(partition, whole, temperatures, status, fallback)


@parameters
class ClusterCalibrator(TemperatureCalibrator):
    """k-means of the calibration features, and a temperature for each cluster.

    Parameters and attributes are those of `NearestClusterTemperature`.
    """

    takes = ("features",)
    uses_features = True
    n_clusters: Count = 8
    _: KW_ONLY
    scaling: str | None = None
    min_cluster_size: Size = 20
    penalty: NotNegative = 0.0
    n_init: Count = 10
    max_iter: Count = 300
    random_state: Seed = 0

    def _learn(self, data: CalibrationData) -> None:
        self._remember(self._fit_clusters(data))

    def partition(self, data: CalibrationData) -> Partition:
        """k-means of the rows, shared with whoever asked alike."""
        return data.partition(self.n_clusters, **self._of_k_means())

    def _fit_clusters(self, data: CalibrationData) -> ClusterTemperatures:
        return fit_cluster_temperatures(
            data, self.partition(data), self.min_cluster_size, self.penalty
        )

    def _of_k_means(self) -> dict[str, Any]:
        names = ("n_init", "max_iter", "random_state", "scaling")
        return {name: getattr(self, name) for name in names}

    def _remember(self, fitted: ClusterTemperatures) -> None:
        self.clusters_ = fitted.partition.clusters
        self.cluster_centers_ = fitted.partition.clusters.centers
        self.cluster_temperatures_ = fitted.temperatures
        self.temperature_ = float(fitted.set_level.temperature[0])
        self.status_ = fitted.status
        self.n_fallbacks_ = int(fitted.fallback.sum())
        self.n_clusters_ = len(fitted.temperatures)


class NearestClusterTemperature(ClusterCalibrator):
    """The temperature of the nearest k-means cluster of the calibration features.

    Parameters
    ----------
    n_clusters : number of k-means clusters.
    scaling : None, "standardize" or "l2": how features are scaled before k-means.
    min_cluster_size : smaller clusters take the set-level temperature.
    penalty : penalty of each cluster towards the set-level temperature; 0 is none.
    n_init, max_iter, random_state : of k-means.

    Attributes
    ----------
    temperature_ : float, the set-level temperature.
    cluster_temperatures_, cluster_centers_ : (k,) and (k, d), centres in scaled space.
    status_ : (k,) status of each cluster's own fit.
    n_fallbacks_ : clusters that took the set-level temperature.
    n_clusters_ : clusters left, where equal ones were merged.
    clusters_ : centres with their radii and scaling.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 3.0])
    >>> cal = ch.NearestClusterTemperature(n_clusters=2)
    >>> cal = cal.fit(data.logits, data.labels, features=data.features)
    >>> cal.temperature(data.logits[[0, -1]], data.features[[0, -1]]).round(1)
    array([1.1, 2.7])
    """

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.cluster_temperatures_[self.clusters_.assign(features)[0]]


@parameters
class RegressedTemperature(ClusterCalibrator):
    """A line through the (cluster centre, cluster temperature) pairs.

    Parameters
    ----------
    As `NearestClusterTemperature`, and:
    clip : "floor" keeps T above a tenth of the smallest cluster temperature; "range"
        keeps it between the smallest and the largest.
    target : "temperature", or "log" to regress log T, positive by construction.
    line_penalty : relative to the mean squared spread of the centres; 0 interpolates
        with the smallest norm, "auto" chooses by leaving out one cluster at a time.

    Attributes
    ----------
    As `NearestClusterTemperature`, and:
    coef_, intercept_ : of the line, in scaled feature space.
    line_penalty_ : the penalty used.
    clipped_share_ : share of the calibration rows whose T was clipped.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains()    # best T: 1, 1.5, 2, 3
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.RegressedTemperature()
    >>> cal = cal.fit(seen.logits, seen.labels, features=seen.features)
    >>> round(float(cal.temperature(unseen.logits, unseen.features).mean()), 1)
    2.2
    """

    _: KW_ONLY
    clip: str = "floor"
    target: str = "temperature"
    line_penalty: NotNegative | str = 0.0

    def _learn(self, data: CalibrationData) -> None:
        super()._learn(data)
        self.clipped_share_ = float(self._is_clipped(data.features).mean())

    def clipped(self, features: ArrayLike) -> np.ndarray:
        """Which rows of features (n, d) get a clipped temperature, (n,) bool."""
        check_is_fitted(self)
        return self._is_clipped(check_features(features, None, self.n_features_))

    def _is_clipped(self, features: np.ndarray) -> np.ndarray:
        raw = self._line_values(features)
        return (raw < self.bounds_[0]) | (raw > self.bounds_[1])

    def _remember(self, fitted: ClusterTemperatures) -> None:
        super()._remember(fitted)
        check_choice(self.target, "target", "temperature", "log")
        heights = fitted.temperatures
        line = fit_line(
            self.cluster_centers_,
            np.log(heights) if self.target == "log" else heights,
            self.line_penalty,
        )
        self.coef_, self.intercept_, self.line_penalty_ = line
        self.bounds_ = temperature_bounds(heights, self.clip)

    def _line_values(self, features: np.ndarray) -> np.ndarray:
        line = Line(self.coef_, self.intercept_, self.line_penalty_)
        values = line.at(features, self.clusters_.transform)
        # Far from every centre the line may leave the range of numbers.
        with np.errstate(over="ignore"):
            return np.exp(values) if self.target == "log" else values

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return np.clip(self._line_values(features), *self.bounds_)


def temperature_bounds(temperatures: np.ndarray, clip: str) -> tuple[float, float]:
    """What a regression of these temperatures is kept within."""
    check_choice(clip, "clip", "floor", "range")
    lowest, highest = float(temperatures.min()), float(temperatures.max())
    return (lowest, highest) if clip == "range" else (FLOOR_SHARE * lowest, np.inf)
