"""A temperature that knows how far it is from home."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from coolhead.calibrators.base import FitData, TemperatureCalibrator
from coolhead.calibrators.domains import Domains, drop_weightless, find_domains
from coolhead.calibrators.shift_aware.descriptors import (
    DESCRIPTORS,
    Descriptor,
    Home,
    describe,
    describe_home,
)
from coolhead.calibrators.shift_aware.loglinear import Standard, standardise
from coolhead.calibrators.shift_aware.pooled import (
    find_level,
    fit_weights,
    left_out_losses,
    prefer,
)
from coolhead.numerics.checks import check_features

RIDGE = 8.0
RIDGE_GRID = (2.0, 8.0, 32.0, 128.0)
# Stiffness of the source's own offset, in the units of `describe`.
SOURCE_STIFFNESS = 10.0


class ShiftAwareTemperature(TemperatureCalibrator):
    """log T(x) = c + w · (shift descriptors of x), fitted directly on the loss.

    Held-out rows of the source have an offset of their own, which no other row gets:
    the classifier may be surer at home in ways that no descriptor shows.

    Parameters
    ----------
    descriptors : names out of `descriptors.DESCRIPTORS`, or functions
        (logits, features, home) -> (n,) or (n, p); None stands for all named ones.
    ridge : prior rows: how many samples' worth of evidence a descriptor needs before
        it counts; "auto" chooses by leaving out one calibration domain at a time.
    n_components, n_neighbours : of the descriptors that use them.
    random_state : of the sample of reference features.

    Attributes
    ----------
    coef_, intercept_ : (p,) and float, over the standardised descriptors.
    source_offset_ : float, log T of the source's rows beyond what descriptors say.
    standard_ : centre, scale and clamping range of the descriptors.
    home_ : what is remembered of the reference features.
    bounds_ : lowest and highest log T that the domains support.
    ridge_ : the penalty used.
    temperature_ : float, of all rows together, every domain counting the same.
    status_ : str, one of `Status`, followed by what was missing.
    """

    uses_features = True
    home_: Home
    standard_: Standard

    def __init__(
        self,
        descriptors: Sequence[str | Descriptor] | None = None,
        *,
        ridge: float | str = "auto",
        n_components: int = 8,
        n_neighbours: int = 5,
        random_state: Any = 0,
    ):
        self.descriptors = descriptors
        self.ridge = ridge
        self.n_components = n_components
        self.n_neighbours = n_neighbours
        self.random_state = random_state

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        source_domain: Any = None,
        reference_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn how temperature grows with distance from the training data.

        source_domain : name or names in `sample_domain` of held-out source rows.
        reference_features : (r, d) features of rows the classifier was trained on.
        """
        data = drop_weightless(
            self._begin_fit(logits, labels, features, sample_domain, sample_weight)
        )
        domains = find_domains(data.domains, source_domain, len(data.labels))
        self.home_, notes = self._find_home(data, domains, reference_features)
        share = domains.share(data.weights)
        columns, stiffness = self._describe(data.rows.logits, data.features)
        self.standard_ = standardise(columns, share)
        # The offset is no one's where all rows, or none, are of the source.
        at_home = domains.source_rows & ~domains.is_source.all()
        design = np.column_stack([self.standard_.design(columns), at_home])
        stiffness = np.concatenate([[1e-4], stiffness, [SOURCE_STIFFNESS]])
        self.ridge_ = self._choose_ridge(data, domains, design, share, stiffness)
        level = find_level(data, domains.codes, share)
        weights = fit_weights(data, None, design, share, stiffness * self.ridge_, level)
        self.intercept_, self.coef_ = float(weights[0]), weights[1:-1]
        self.source_offset_ = float(weights[-1])
        self.bounds_ = level.lowest, level.highest
        self.temperature_ = float(np.exp(level.log_temperature))
        self.status_ = "; ".join([level.status, *notes])
        return self

    def _describe(
        self, logits: np.ndarray, features: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        chosen = tuple(DESCRIPTORS) if self.descriptors is None else self.descriptors
        return describe(chosen, logits, features, self.home_)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        columns, _ = self._describe(logits, features)
        line = self.standard_.design(columns)[:, 1:] @ self.coef_ + self.intercept_
        return np.exp(np.clip(line, *self.bounds_))

    def _find_home(
        self, data: FitData, domains: Domains, reference: Any
    ) -> tuple[Home, list[str]]:
        """Home, and what is missing of it."""
        notes = []
        rows, n_neighbours = domains.source_rows, self.n_neighbours
        if not rows.any():
            notes.append("no source_domain")
            rows = np.ones(len(data.labels), bool)
        if reference is None:
            notes.append("no reference_features: distance to the calibration data")
            reference = data.features[rows]
            n_neighbours += 1  # a calibration row is its own nearest neighbour
        else:
            reference = check_features(
                reference, len(reference), self.n_features_, "reference_features"
            )
        home = describe_home(
            reference,
            n_components=self.n_components,
            n_neighbours=n_neighbours,
            random_state=self.random_state,
            reach=data.rows.reach,
        )
        return home, notes

    def _choose_ridge(
        self,
        data: FitData,
        domains: Domains,
        design: np.ndarray,
        share: np.ndarray,
        stiffness: np.ndarray,
    ) -> float:
        """The ridge given, or the one under which left-out domains lose least."""
        if self.ridge != "auto":
            if isinstance(self.ridge, str) or not self.ridge >= 0:
                raise ValueError(
                    f"ridge is {self.ridge!r}; wanted a number >= 0 or 'auto'"
                )
            return float(self.ridge)
        ridges = [stiffness * ridge for ridge in RIDGE_GRID]
        losses = left_out_losses(data, domains, design, share, ridges)
        if not losses.size:
            return RIDGE
        return RIDGE_GRID[prefer(RIDGE_GRID.index(RIDGE), losses)]
