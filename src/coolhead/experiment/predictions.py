"""What a method says about the evaluated rows, reduced to vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.experiment.rows import LabelledRows
from coolhead.metrics.scores import brier_scores
from coolhead.numerics.softmax import score_rows


@dataclass(frozen=True)
class Predictions:
    """Scores of every evaluated row, (n,) each; `temperature` None if there is none."""

    confidence: np.ndarray
    correct: np.ndarray
    log_loss: np.ndarray
    brier: np.ndarray
    temperature: np.ndarray | None

    @property
    def top_brier(self) -> np.ndarray:
        """Squared difference of correctness and confidence."""
        return np.square(self.confidence - self.correct)


def predict(calibrator: Any, rows: LabelledRows) -> Predictions:
    """Apply a fitted calibrator; None stands for the uncalibrated classifier."""
    if calibrator is None:
        return with_temperature(rows, np.ones(len(rows.labels)))
    if hasattr(calibrator, "temperature"):
        temperature = calibrator.temperature(rows.logits, rows.features)
        return with_temperature(rows, temperature)
    return with_probabilities(
        rows, calibrator.predict_proba(rows.logits, rows.features)
    )


def with_temperature(rows: LabelledRows, temperature: np.ndarray) -> Predictions:
    """Scores of softmax(z / T); the (n, k) probabilities are never built."""
    found = score_rows(rows.logits, rows.labels, temperature)
    return Predictions(
        confidence=np.minimum(found.confidence, 1),
        correct=found.predicted == rows.labels,
        log_loss=found.log_loss,
        brier=found.brier,
        temperature=temperature,
    )


def with_probabilities(rows: LabelledRows, probabilities: np.ndarray) -> Predictions:
    """Scores of (n, k) probabilities, of methods that change the class scores."""
    each = np.arange(len(probabilities))
    predicted = probabilities.argmax(axis=1)
    own = probabilities[each, rows.labels].astype(np.float64)
    # A zero would make the mean infinite and hide all other rows.
    smallest = np.finfo(np.float64).tiny
    return Predictions(
        confidence=np.minimum(probabilities[each, predicted], 1).astype(np.float64),
        correct=predicted == rows.labels,
        log_loss=-np.log(np.maximum(own, smallest)),
        brier=brier_scores(rows.labels, probabilities),
        temperature=None,
    )
