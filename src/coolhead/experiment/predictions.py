"""What a method says about the evaluated rows, reduced to vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.experiment.rows import LabelledRows
from coolhead.metrics.scores import score_probabilities
from coolhead.numerics.softmax import RowScores, score_rows


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
    return _told(score_rows(rows.logits, rows.labels, temperature), rows, temperature)


def with_probabilities(rows: LabelledRows, probabilities: np.ndarray) -> Predictions:
    """Scores of (n, k) probabilities, of methods that change the class scores."""
    return _told(score_probabilities(rows.labels, probabilities), rows, None)


def _told(
    found: RowScores, rows: LabelledRows, temperature: np.ndarray | None
) -> Predictions:
    return Predictions(
        confidence=np.minimum(found.confidence, 1).astype(np.float64),
        correct=found.predicted == rows.labels,
        log_loss=found.log_loss,
        brier=found.brier,
        temperature=temperature,
    )
