"""Ensemble of temperatures: averaging scaled logits is a harmonic mean of T."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.base import OfParts, TemperatureCalibrator
from coolhead.calibrators.clustered import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.data import CalibrationData, fit_with, fresh
from coolhead.calibrators.parameters import Count, Seed, parameters
from coolhead.calibrators.temperature import TemperatureScaling


@parameters
class TemperatureEnsemble(OfParts, TemperatureCalibrator):
    """The mean of the members' scaled logits, exactly: 1/T = mean of the 1/T_m.

    Parameters
    ----------
    members : temperature calibrators to combine; None stands for set-level, nearest
        cluster and regression on one shared k-means.
    n_clusters, random_state : int
        Parameters of k-means; not used with `members`.

    Attributes
    ----------
    members_ : the fitted members.
    temperature_ : float, the harmonic mean of the members' `temperature_`.
    status_ : status of each member, joined to one string where it has several.
    n_fallbacks_ : clusters of all members that took the set-level temperature.
    clipped_share_ : share of the calibration rows whose T a member clipped (the
        largest share, where several members clip).

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains()    # best T: 1, 1.5, 2, 3
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureEnsemble()
    >>> cal = cal.fit(seen.logits, seen.labels, features=seen.features)
    >>> round(float(cal.temperature(unseen.logits, unseen.features).mean()), 1)
    1.8
    """

    members: list[TemperatureCalibrator] | None = None
    n_clusters: Count = 8
    _: KW_ONLY
    random_state: Seed = 0

    def _learn(self, data: CalibrationData) -> None:
        self.members_ = [fit_with(fresh(member), data) for member in self._parts()]
        inverses = [1 / member.temperature_ for member in self.members_]
        self.temperature_ = float(1 / np.mean(inverses))
        self.status_ = np.array([_joined(member.status_) for member in self.members_])
        self.n_fallbacks_ = sum(getattr(m, "n_fallbacks_", 0) for m in self.members_)
        self.clipped_share_ = max(
            getattr(member, "clipped_share_", 0.0) for member in self.members_
        )
        found = [m.clusters_ for m in self.members_ if hasattr(m, "clusters_")]
        if found:
            self.clusters_ = found[0]

    def clipped(self, features: ArrayLike) -> np.ndarray:
        """Which rows of features (n, d) get a T that a member clipped, (n,) bool."""
        check_is_fitted(self)
        guarded = [m for m in self.members_ if isinstance(m, RegressedTemperature)]
        marks = [
            np.zeros(np.shape(features)[0], bool),
            *(m.clipped(features) for m in guarded),
        ]
        return np.any(marks, axis=0)

    def _parts(self) -> list[TemperatureCalibrator]:
        if self.members is None:
            count, seed = self.n_clusters, self.random_state
            return [
                TemperatureScaling(),
                NearestClusterTemperature(count, random_state=seed),
                RegressedTemperature(count, random_state=seed),
            ]
        if not len(self.members):
            raise ValueError("members holds no calibrator; wanted one or more")
        return list(self.members)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        inverses = [1 / m._temperature(logits, features) for m in self.members_]
        return len(inverses) / np.sum(inverses, axis=0)


def _joined(status: Any) -> str:
    """The distinct statuses of one member, the most frequent first."""
    names, counts = np.unique(np.atleast_1d(status), return_counts=True)
    return ", ".join(names[np.argsort(-counts, kind="stable")])
