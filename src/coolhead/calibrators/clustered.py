"""Temperatures of k-means clusters, and the line of least norm through them."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Count, NotNegative, Seed, Size, parameters
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice, check_features
from coolhead.numerics.solver import Penalty, Solution, Status, solve_temperatures
from coolhead.shift.clusters import Partition

FLOOR_SHARE = 0.1


def fit_line(
    centers: np.ndarray, heights: np.ndarray, penalty: float
) -> tuple[np.ndarray, float]:
    """Slope and intercept by least squares; those of smallest norm without a penalty.

    penalty : a multiple of the mean eigenvalue of the centred Gram matrix.
    """
    middle = centers.mean(axis=0)
    centred = centers - middle
    gram = centred @ centred.T
    added = penalty * np.trace(gram) / len(gram)
    # With an intercept the Gram matrix is singular by construction; pinv also copes
    # with centres that lie on a line.
    inverse = np.linalg.pinv(gram + added * np.eye(len(gram)), hermitian=True)
    slope = centred.T @ (inverse @ (heights - heights.mean()))
    return slope, float(heights.mean() - slope @ middle)


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
        """Fit every cluster in the same passes, drawn to the set-level temperature.

        Clusters that are small or have no minimum get the set-level temperature.
        """
        partition = self.partition(data)
        whole = data.set_temperature()
        solved = self._solve(data, partition, whole)
        sizes, n_rows = solved.n_samples, len(data)
        small = (sizes < self.min_cluster_size) & (sizes < n_rows)
        self.status_ = np.where(small, str(Status.TOO_FEW_SAMPLES), solved.status)
        # One cluster that holds every row is the set itself: nothing to fall back to.
        fallback = (self.status_ != Status.CONVERGED) & (sizes < n_rows)
        self.cluster_temperatures_ = np.where(
            fallback, whole.temperature[0], solved.temperature
        )
        self.clusters_ = partition.clusters
        self.cluster_centers_ = partition.clusters.centers
        self.temperature_ = float(whole.temperature[0])
        self.n_fallbacks_ = int(fallback.sum())
        self.n_clusters_ = len(fallback)

    def _solve(
        self, data: CalibrationData, partition: Partition, whole: Solution
    ) -> Solution:
        """Solve all clusters, once for calibrators of equal settings.

        The penalty tau of cluster j is (tau / n_j) (log T_j - log T_set)² / 2.
        """
        count, penalty = len(partition.clusters.centers), None
        if self.penalty:
            sizes = np.bincount(partition.assignment, minlength=count)
            penalty = Penalty(self.penalty / sizes, -np.log(whole.temperature[0]))
        settings = self._of_k_means()
        key = ("clusters", self.n_clusters, self.penalty, *sorted(settings.items()))
        return data.once(
            key,
            lambda: solve_temperatures(
                data.rows, partition.assignment, data.weights, count, penalty
            ),
        )

    def partition(self, data: CalibrationData) -> Partition:
        """k-means of the rows, shared by calibrators of equal settings."""
        return data.partition(self.n_clusters, **self._of_k_means())

    def _of_k_means(self) -> dict[str, Any]:
        names = ("n_init", "max_iter", "random_state", "scaling")
        return {name: getattr(self, name) for name in names}


class NearestClusterTemperature(ClusterCalibrator):
    """The temperature of the nearest k-means cluster of the calibration features.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of k-means clusters.
    scaling : {None, "standardize", "l2"}, default=None
        How features are scaled before k-means.
    min_cluster_size : int, default=20
        Smaller clusters take the set-level temperature.
    penalty : float, default=0.0
        Penalty of each cluster towards the set-level temperature; 0 is none.
    n_init, max_iter, random_state : int
        Parameters of k-means.

    Attributes
    ----------
    temperature_ : float
        The set-level temperature.
    cluster_temperatures_ : ndarray of shape (n_clusters,)
        Temperature of each cluster.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres in scaled space.
    status_ : ndarray of shape (n_clusters,)
        Status of each cluster's own fit.
    n_fallbacks_ : int
        Number of clusters that took the set-level temperature.
    n_clusters_ : int
        Number of clusters after equal ones were merged.
    clusters_ : Clusters
        Centres with their radii and scaling.

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
    n_clusters : int, default=8
        Number of k-means clusters.
    scaling : {None, "standardize", "l2"}, default=None
        How features are scaled before k-means.
    min_cluster_size : int, default=20
        Smaller clusters take the set-level temperature.
    penalty : float, default=0.0
        Penalty of each cluster towards the set-level temperature; 0 is none.
    n_init, max_iter, random_state : int
        Parameters of k-means.
    clip : {"floor", "range"}, default="floor"
        "floor" keeps T above a tenth of the smallest cluster temperature; "range"
        keeps it between the smallest and the largest.
    target : {"temperature", "log"}, default="temperature"
        "log" regresses log T, which is positive by construction.
    line_penalty : float, default=0.0
        Relative to the mean squared spread of the centres; 0 interpolates with the
        smallest norm.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,) and float
        The line, in scaled feature space.
    clipped_share_ : float
        Share of the calibration rows whose T was clipped. Other attributes as in
        `NearestClusterTemperature`.

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
    line_penalty: NotNegative = 0.0

    def _learn(self, data: CalibrationData) -> None:
        check_choice(self.target, "target", "temperature", "log")
        super()._learn(data)
        heights = self.cluster_temperatures_
        self.coef_, self.intercept_ = fit_line(
            self.cluster_centers_,
            np.log(heights) if self.target == "log" else heights,
            self.line_penalty,
        )
        self.bounds_ = temperature_bounds(heights, self.clip)
        self.clipped_share_ = float(self._is_clipped(data.features).mean())

    def clipped(self, features: ArrayLike) -> np.ndarray:
        """Which rows of features (n, d) get a clipped temperature, (n,) bool."""
        check_is_fitted(self)
        return self._is_clipped(check_features(features, None, self.n_features_))

    def _is_clipped(self, features: np.ndarray) -> np.ndarray:
        raw = self._line_values(features)
        return (raw < self.bounds_[0]) | (raw > self.bounds_[1])

    def _line_values(self, features: np.ndarray) -> np.ndarray:
        values = np.empty(len(features))
        for rows in row_blocks(*features.shape):
            values[rows] = self.clusters_.transform(features[rows]) @ self.coef_
        values += self.intercept_
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
