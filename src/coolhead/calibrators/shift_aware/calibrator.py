"""A temperature that knows how far it is from the training data."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Count, NotNegative, Seed, parameters
from coolhead.calibrators.shift_aware.descriptors import DEFAULT, Descriptor, describe
from coolhead.calibrators.shift_aware.loglinear import standardise
from coolhead.calibrators.shift_aware.pooled import (
    find_range,
    fit_weights,
    left_out_losses,
    prefer,
)
from coolhead.calibrators.shift_aware.training import (
    TrainingReference,
    describe_reference,
)
from coolhead.numerics.moments import Rows

DEFAULT_PENALTY = 8.0
PENALTY_GRID = (2.0, 8.0, 32.0, 128.0)
# Penalty of the source's own offset, in the units of `describe`.
SOURCE_PENALTY = 10.0


@parameters
class ShiftAwareTemperature(TemperatureCalibrator):
    """log T(x) = c + w · (shift descriptors of x), fitted directly on the loss.

    Held-out rows of the source have an offset of their own, which no other row gets:
    the classifier may be surer at home in ways that no descriptor shows.

    Parameters
    ----------
    descriptors : names out of `descriptors.DESCRIPTORS`, or functions
        (logits, features, reference) -> (n,) or (n, p); None stands for `DEFAULT`.
    penalty : prior rows: how many samples' worth of evidence a descriptor needs before
        it counts; "auto" chooses by leaving out one calibration domain at a time.
    n_components, n_neighbours : of the descriptors that use them.
    random_state : of the sample of reference features.

    Attributes
    ----------
    coef_, intercept_ : (p,) and float, over the standardised descriptors.
    source_offset_ : float, log T of the source's rows beyond what descriptors say.
    standard_ : centre, scale and clamping range of the descriptors.
    training_reference_ : what is remembered of the reference features.
    bounds_ : lowest and highest log T that the domains support.
    penalty_ : the penalty used.
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
        data = data.without_weightless()
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
            random_state=self.random_state,
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
        """The penalty given, or the one under which left-out domains lose least."""
        if self.penalty != "auto":
            if isinstance(self.penalty, str) or not self.penalty >= 0:
                raise ValueError(
                    f"penalty is {self.penalty!r}; wanted a number >= 0 or 'auto'"
                )
            return float(self.penalty)
        penalties = [column_penalty * penalty for penalty in PENALTY_GRID]
        losses = left_out_losses(data, design, row_weights, penalties)
        if not losses.size:
            return DEFAULT_PENALTY
        return PENALTY_GRID[prefer(PENALTY_GRID.index(DEFAULT_PENALTY), losses)]
