"""Ensemble of temperatures: averaging scaled logits is a harmonic mean of T."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.base import TemperatureCalibrator, fresh
from coolhead.calibrators.clustered.calibrators import (
    NearestClusterTemperature,
    RegressedTemperature,
    clusters_of,
)
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.shift.clusters import Partition


class TemperatureEnsemble(TemperatureCalibrator):
    """The mean of the members' scaled logits, exactly: 1/T = mean of the 1/T_m.

    Parameters
    ----------
    members : temperature calibrators to combine; None stands for set-level, nearest
        cluster and regression on one shared k-means.
    n_clusters, random_state : of that k-means; not used with `members`.

    Attributes
    ----------
    members_ : the fitted members.
    temperature_ : float, the harmonic mean of the members' `temperature_`.
    status_ : status of each member, joined to one string where it has several.
    n_fallbacks_ : clusters of all members that took the set-level temperature.
    clipped_share_ : share of the calibration rows whose T a member clipped (the
        largest share, where several members clip).
    """

    def __init__(
        self,
        members: list[TemperatureCalibrator] | None = None,
        n_clusters: int = 8,
        *,
        random_state: Any = 0,
    ):
        self.members = members
        self.n_clusters = n_clusters
        self.random_state = random_state

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether a member does."""
        return self.members is None or any(m.uses_features for m in self._given())

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
        partition: Partition | None = None,
    ) -> Self:
        """Fit every member on the same rows.

        partition : of exactly these rows, to share one k-means between methods.
        """
        data = self._begin_fit(logits, labels, features, sample_domain, sample_weight)
        if self.members is None:
            return self._remember(self._default_members(data, partition))
        return self._remember(
            [
                fresh(member).fit(
                    logits,
                    labels,
                    features=features,
                    sample_domain=sample_domain,
                    sample_weight=sample_weight,
                )
                for member in self._given()
            ]
        )

    def clipped(self, features: Any) -> np.ndarray:
        """Which rows of features (n, d) get a T that a member clipped, (n,) bool."""
        check_is_fitted(self)
        guarded = [m for m in self.members_ if isinstance(m, RegressedTemperature)]
        marks = [np.zeros(len(features), bool), *(m.clipped(features) for m in guarded)]
        return np.any(marks, axis=0)

    def _given(self) -> list[TemperatureCalibrator]:
        members = list(self.members or ())
        wrong = [m for m in members if not isinstance(m, TemperatureCalibrator)]
        if wrong or not members:
            found = type(wrong[0]).__name__ if wrong else "no calibrator"
            raise ValueError(
                f"members holds {found}; wanted a list of temperature calibrators"
            )
        return members

    def _remember(self, members: list[TemperatureCalibrator]) -> Self:
        self.members_ = members
        own = [member for member in members if member.uses_features]
        if own:
            self.clusters_ = own[0].clusters_
        inverses = [1 / member.temperature_ for member in self.members_]
        self.temperature_ = float(1 / np.mean(inverses))
        self.status_ = np.array([_joined(member.status_) for member in self.members_])
        self.n_fallbacks_ = sum(getattr(m, "n_fallbacks_", 0) for m in self.members_)
        self.clipped_share_ = max(
            getattr(m, "clipped_share_", 0.0) for m in self.members_
        )
        return self

    def _default_members(
        self, data: Any, partition: Partition | None
    ) -> list[TemperatureCalibrator]:
        nearest, line = self._cluster_members()
        fitted = clusters_of(nearest, data, partition)
        members = [
            TemperatureScaling()._remember(fitted.set_level),
            nearest._remember(fitted),
            line._remember(fitted),
        ]
        for member in members:
            member.n_classes_ = member.n_features_in_ = self.n_classes_
            member.n_features_ = self.n_features_ if member.uses_features else None
        line.clipped_share_ = float(line.clipped(data.features).mean())
        return members

    def _cluster_members(
        self,
    ) -> tuple[NearestClusterTemperature, RegressedTemperature]:
        settings = {"random_state": self.random_state}
        return (
            NearestClusterTemperature(self.n_clusters, **settings),
            RegressedTemperature(self.n_clusters, **settings),
        )

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        inverses = [1 / m._temperature(logits, features) for m in self.members_]
        return len(inverses) / np.sum(inverses, axis=0)


def _joined(status: Any) -> str:
    """The distinct statuses of one member, the most frequent first."""
    names, counts = np.unique(np.atleast_1d(status), return_counts=True)
    return ", ".join(names[np.argsort(-counts, kind="stable")])
