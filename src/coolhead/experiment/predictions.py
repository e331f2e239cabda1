"""What a method says about the evaluated rows, reduced to vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.experiment.rows import LabelledRows
from coolhead.metrics.scores import score_calibrated


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
    scores, temperature = score_calibrated(
        calibrator, rows.logits, rows.labels, rows.features
    )
    return Predictions(
        confidence=np.minimum(scores.confidence, 1).astype(np.float64),
        correct=scores.predicted == rows.labels,
        log_loss=scores.log_loss,
        brier=scores.brier,
        temperature=temperature,
    )
