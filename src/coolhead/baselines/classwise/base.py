"""What calibrators that change the class scores have in common."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coolhead.calibrators.base import Answer, Calibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.quality import remember_losses
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_logit_values
from coolhead.numerics.masks import hide_masked, without_masked


class ScoreData(NamedTuple):
    """What these calibrators see of `CalibrationData`.

    Weights have mean one, masked logits are -inf.
    """

    logits: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    absent: np.ndarray
    reach: float


class ScoreCalibrator(Calibrator):
    """Maps logits to probabilities; the predicted class may change.

    A subclass writes `_learn_scores(data) -> status` and `_probabilities`, which gets a
    block of checked logits (m, k), -inf for masked classes, and returns rows that sum
    to one.

    Attributes
    ----------
    learns_classes : whether every class has parameters of its own.
    accuracy_change_ : accuracy after minus before calibration, on the fit set.
    absent_classes_ : classes without a row in the fit set; they keep their scores.
    reach_ : how far below its row's largest a logit may lie and not count as masked.
    status_, nll_, nll_uncalibrated_ : of the fit set.
    """

    learns_classes: bool = False
    reach_: float

    def _learn(self, data: CalibrationData) -> None:
        scores = score_data(data)
        self.absent_classes_, self.reach_ = scores.absent, scores.reach
        if len(scores.absent) and self.learns_classes:
            warnings.warn(_absent_message(self, scores.absent), stacklevel=5)
        self._judge(scores, self._learn_scores(scores))

    def _predict(self, logits: np.ndarray, features: Any) -> Answer:
        probabilities = np.empty(logits.shape, np.result_type(logits, np.float32))
        for rows, block in self._blocks(logits):
            probabilities[rows] = block
        return probabilities, None

    def _confidence(
        self, logits: np.ndarray, features: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        largest, predicted = np.empty(len(logits)), np.empty(len(logits), np.intp)
        for rows, block in self._blocks(logits):
            largest[rows], predicted[rows] = block.max(axis=1), block.argmax(axis=1)
        return largest, predicted

    def _blocks(self, logits: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows and their probabilities, exactly zero for masked classes."""
        check_logit_values(logits, "logits")
        for rows in row_blocks(*logits.shape):
            block = hide_masked(logits[rows], self.reach_)
            yield rows, without_masked(self._probabilities(block), block)

    def _learn_scores(self, data: ScoreData) -> str:
        raise NotImplementedError(f"{type(self).__name__} learns nothing")

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not define its map")

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
        remember_losses(self, losses, data, status)


def _absent_message(calibrator: ScoreCalibrator, absent: np.ndarray) -> str:
    listed = ", ".join(str(int(k)) for k in absent[:10])
    more = " and more" if len(absent) > 10 else ""
    return (
        f"labels never hold {len(absent)} of {calibrator.n_classes_} classes: "
        f"{listed}{more}; {type(calibrator).__name__} learns nothing about them, and "
        "what it learns about the others may not hold where they occur"
    )


def score_data(data: CalibrationData) -> ScoreData:
    """Weights of mean one, masked classes, and the classes that never occur."""
    weights = data.weights
    weights = np.ones(len(data)) if weights is None else weights / weights.mean()
    mass = np.bincount(data.labels, weights, data.logits.shape[1])
    logits = hide_masked(data.logits, data.rows.reach, data.labels)
    absent = np.flatnonzero(mass == 0)
    return ScoreData(logits, data.labels, weights, absent, data.rows.reach)
