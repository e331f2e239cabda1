"""DAC: the further a sample lies from known data, the higher its temperature."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.neighbors import NearestNeighbors

from coolhead.calibrators.base import TemperatureCalibrator, remember_beyond
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.descriptors import unit_rows
from coolhead.calibrators.parameters import Count, Seed, parameters
from coolhead.numerics.checks import check_choice
from coolhead.numerics.search import temperature_slopes

FLOOR_SHARE = 0.1


@parameters
class DensityAwareTemperature(TemperatureCalibrator):
    """T(x) = w₀ + Σ_l w_l s_l(x), with s_l the squared distance to a near neighbour.

    This is the first stage of DAC; `TwoStageCalibration` adds the second, a base
    calibrator on z / T(x). Distances are measured between features of unit length,
    layer by layer. The fit starts at the set-level temperature.

    Parameters
    ----------
    n_neighbors : int, default=10
        The neighbour whose distance is taken.
    neighbor : {"kth", "nearest"}, default="kth"
        "kth" as described in the paper, "nearest" as in its released code.
    layer_widths : tuple of int, default=None
        Columns of each layer when `features` joins several.
    max_reference : int, default=10_000
        Reference rows kept, drawn at random beyond that.
    random_state : int, default=0
        Seed of that draw.

    Attributes
    ----------
    coef_ : ndarray of shape (n_layers,)
        w_l, not negative.
    intercept_, floor_ : float
        w₀, and the smallest T.
    temperature_ : float
        The set-level temperature.
    reference_ : ndarray of shape (n_reference, n_features)
        Features that distances are measured to.
    status_, nll_, nll_uncalibrated_
        Of the fit set.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> home = data.features[:300]    # what the classifier learned
    >>> cal = ch.baselines.DensityAwareTemperature().fit(
    ...     data.logits, data.labels, features=data.features, reference_features=home
    ... )
    >>> cal.coef_.shape, cal.temperature(data.logits, data.features).shape
    ((1,), (600,))
    """

    takes = ("features", "reference")
    uses_features = True

    n_neighbors: Count = 10
    _: KW_ONLY
    neighbor: str = "kth"
    layer_widths: tuple[Count, ...] | None = None
    max_reference: Count = 10_000
    random_state: Seed = 0

    def _learn(self, data: CalibrationData) -> None:
        # Without training rows each row is measured against the other calibration rows.
        check_choice(self.neighbor, "neighbor", "kth", "nearest")
        own = data.reference is None
        known: Any = data.features if own else data.reference
        rng = np.random.default_rng(self.random_state)
        kept = np.sort(rng.permutation(len(known))[: self.max_reference])
        self.reference_ = known[kept].astype(np.float32)
        distances = self._distances(data.features, own=own)
        solution = data.set_temperature()
        self.temperature_ = float(solution.temperature[0])
        self.floor_ = FLOOR_SHARE * self.temperature_
        self._fit_weights(data, distances)
        remember_beyond(self, data, self._combine(distances), solution)

    def _layers(self) -> list[slice]:
        widths: Any = self.layer_widths or (self.n_features_,)
        if sum(widths) != self.n_features_:
            raise ValueError(
                f"layer_widths sum to {sum(widths)}, features have "
                f"{self.n_features_} columns"
            )
        ends = np.cumsum(widths)
        return [
            slice(int(end - w), int(end)) for end, w in zip(ends, widths, strict=True)
        ]

    def _distances(self, features: np.ndarray, *, own: bool = False) -> np.ndarray:
        """Squared distances (n, layers); `own` rows do not count as their neighbour."""
        k = 1 if self.neighbor == "nearest" else self.n_neighbors
        columns = [
            neighbor_distances(features[:, layer], self.reference_[:, layer], k + own)
            for layer in self._layers()
        ]
        return np.stack(columns, axis=1)

    def _fit_weights(self, data: CalibrationData, distances: np.ndarray) -> None:
        """L-BFGS in units of the set-level temperature and the mean distances."""
        means = np.maximum(distances.mean(axis=0), np.finfo(float).tiny)
        inputs = np.column_stack([np.ones(len(distances)), distances / means])
        shares = data.row_shares

        def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            raw = inputs @ parameters
            relative = np.maximum(raw, FLOOR_SHARE)
            losses, slopes = temperature_slopes(
                data.rows.logits, data.labels, relative * self.temperature_
            )
            flow = shares * slopes / relative * (raw > FLOOR_SHARE)
            return float(shares @ losses), inputs.T @ flow

        n_layers = distances.shape[1]
        starts = [np.r_[1.0, np.zeros(n_layers)], np.full(n_layers + 1, 0.5)]
        ends: list[Any] = [
            minimize(
                objective,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(None, None), *[(0.0, None)] * n_layers],
                options={"ftol": 1e-12, "gtol": 1e-8},
            )
            for start in starts
        ]
        best = min(ends, key=lambda end: end.fun).x
        self.intercept_ = float(best[0] * self.temperature_)
        self.coef_ = best[1:] * self.temperature_ / means

    def _combine(self, distances: np.ndarray) -> np.ndarray:
        return np.maximum(distances @ self.coef_ + self.intercept_, self.floor_)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self._combine(self._distances(features))


def neighbor_distances(
    features: np.ndarray, reference: np.ndarray, n_neighbors: int
) -> np.ndarray:
    """Squared distance (n,) to the n-th nearest reference row, at unit length."""
    n_neighbors = min(n_neighbors, len(reference))
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute")
    search.fit(unit_rows(reference))
    distance, _ = search.kneighbors(unit_rows(features))
    return distance[:, -1].astype(np.float64) ** 2
