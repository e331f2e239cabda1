"""What calibrators that change the class scores have in common."""

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.quality import judge_losses
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import (
    as_logits,
    check_labels,
    check_logit_values,
    check_logits,
    check_weights,
)
from coolhead.numerics.masks import hide_masked, label_reach, without_masked


class ScoreData(NamedTuple):
    """Checked arguments of `fit`; weights have mean one, masked logits are -inf."""

    logits: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    absent: np.ndarray
    reach: float


class ScoreCalibrator(BaseEstimator):
    """Maps logits to probabilities; the predicted class may change.

    A subclass writes `_learn(data) -> status` and `_probabilities`, which gets a
    block of checked logits (m, k), -inf for masked classes, and returns rows that sum
    to one.

    Attributes
    ----------
    accuracy_change_ : accuracy after minus before calibration, on the fit set.
    absent_classes_ : classes without a row in the fit set; they keep their scores.
    reach_ : how far below its row's largest a logit may lie and not count as masked.
    status_, nll_, nll_uncalibrated_ : of the fit set.
    """

    n_classes_: int
    reach_: float

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from labelled rows; `features` and `sample_domain` are not used."""
        data = check_scores(logits, labels, sample_weight)
        self.n_classes_ = self.n_features_in_ = data.logits.shape[1]
        self.absent_classes_, self.reach_ = data.absent, data.reach
        if len(data.absent) and self._learns_classes():
            warnings.warn(_absent_message(self, data.absent), stacklevel=2)
        status = self._learn(data)
        self._judge(data, status)
        return self

    def predict_proba(self, logits: Any, features: Any = None) -> np.ndarray:
        """Calibrated probabilities (n, k)."""
        logits = self._check_query(logits)
        probabilities = np.empty(logits.shape, np.result_type(logits, np.float32))
        for rows in row_blocks(*logits.shape):
            probabilities[rows] = self._unmasked_probabilities(logits[rows])
        return probabilities

    def confidence(
        self, logits: Any, features: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated confidence and predicted class, (n,) each."""
        logits = self._check_query(logits)
        largest, predicted = np.empty(len(logits)), np.empty(len(logits), np.intp)
        for rows in row_blocks(*logits.shape):
            block = self._unmasked_probabilities(logits[rows])
            largest[rows], predicted[rows] = block.max(axis=1), block.argmax(axis=1)
        return largest, predicted

    def _unmasked_probabilities(self, logits: np.ndarray) -> np.ndarray:
        """`_probabilities`, with exactly zero for masked classes."""
        logits = hide_masked(logits, self.reach_)
        return without_masked(self._probabilities(logits), logits)

    def _learns_classes(self) -> bool:
        """Whether every class has parameters of its own."""
        return False

    def _learn(self, data: ScoreData) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not define _learn")

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not define its map")

    def _check_query(self, logits: Any) -> np.ndarray:
        check_is_fitted(self)
        array = as_logits(logits, allow_empty=True)
        check_logit_values(array, "logits")
        if array.shape[1] != self.n_classes_:
            raise ValueError(
                f"logits has {array.shape[1]} columns; X has {array.shape[1]} "
                f"features, but {type(self).__name__} is expecting "
                f"{self.n_classes_} features as input: one column per class, as in fit"
            )
        return array

    def _judge(self, data: ScoreData, status: str) -> None:
        """Compare loss and accuracy with those of the plain softmax."""
        losses, change = np.empty(len(data.labels)), np.empty(len(data.labels))
        for rows in row_blocks(*data.logits.shape):
            labels = data.labels[rows]
            after = without_masked(
                self._probabilities(data.logits[rows]), data.logits[rows]
            )
            own = after[np.arange(len(labels)), labels].astype(np.float64)
            losses[rows] = -np.log(np.maximum(own, np.finfo(float).tiny))
            right = data.logits[rows].argmax(axis=1) == labels
            change[rows] = (after.argmax(axis=1) == labels) - right.astype(float)
        self.accuracy_change_ = float(np.average(change, weights=data.weights))
        self.status_, self.nll_, self.nll_uncalibrated_ = judge_losses(
            losses, data.logits, data.labels, data.weights, status
        )


def _absent_message(calibrator: ScoreCalibrator, absent: np.ndarray) -> str:
    listed = ", ".join(str(int(k)) for k in absent[:10])
    more = " and more" if len(absent) > 10 else ""
    return (
        f"labels never hold {len(absent)} of {calibrator.n_classes_} classes: "
        f"{listed}{more}; {type(calibrator).__name__} learns nothing about them, and "
        "what it learns about the others may not hold where they occur"
    )


def check_scores(logits: Any, labels: Any, sample_weight: Any) -> ScoreData:
    """Check the arguments of `fit` and find the classes that never occur."""
    array = check_logits(logits)
    n_rows, n_classes = array.shape
    if labels is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: labels are missing; "
            f"wanted one class index per row, ({n_rows},)"
        )
    labels = check_labels(labels, n_classes, n_rows)
    weights = check_weights(sample_weight, n_rows)
    weights = np.ones(n_rows) if weights is None else weights / weights.mean()
    mass = np.bincount(labels, weights, n_classes)
    reach = label_reach(array, labels)
    array = hide_masked(array, reach, labels)
    return ScoreData(array, labels, weights, np.flatnonzero(mass == 0), reach)
