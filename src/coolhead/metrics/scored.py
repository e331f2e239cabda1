"""Scored rows: what every score of labelled rows is computed from, in one pass.

`score_calibrated` reads the logits block by block. It keeps vectors, for resampling,
and sums by class and bin. `ScoreSums` are the sums of all; those of blocks add up.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coolhead.metrics.bins import ClassBins, ConfidenceBins, bin_rows
from coolhead.metrics.scores import brier_scores
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.softmax import RowScores, score_rows
from coolhead.numerics.weights import masked_rows


@dataclass(frozen=True)
class ScoredRows:
    """Labelled rows under one set of probabilities.

    Attributes
    ----------
    rows : RowScores
        Confidence, predicted class, log loss and Brier score of each row.
    labels : ndarray of shape (n_samples,)
    temperature : ndarray of shape (n_samples,) or None
        None of a method without one.
    codes : ndarray of shape (n_samples,)
        Domain of each row.
    class_gaps : ndarray of shape (n_domains, n_classes, n_bins) or None
        Frequency of each class minus its probabilities, see `ClassBins`.
    extra : dict of str to float
        Further scores of these rows, by name.
    """

    rows: RowScores
    labels: np.ndarray
    temperature: np.ndarray | None
    codes: np.ndarray
    class_gaps: np.ndarray | None
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def correct(self) -> np.ndarray:
        """Whether each prediction was right, (n_samples,)."""
        return self.rows.predicted == self.labels

    @property
    def confidence(self) -> np.ndarray:
        """Probability of the predicted class, (n_samples,)."""
        return self.rows.confidence

    @property
    def top_brier(self) -> np.ndarray:
        """Squared difference of correctness and confidence, (n_samples,)."""
        return np.square(self.confidence - self.correct)

    def domain(self, code: int) -> "ScoredRows":
        """The rows of one domain."""
        own = np.flatnonzero(self.codes == code)
        return ScoredRows(
            RowScores(*(column[own] for column in self.rows)),
            self.labels[own],
            None if self.temperature is None else self.temperature[own],
            np.zeros(len(own), np.intp),
            None if self.class_gaps is None else self.class_gaps[[code]],
        )

    def together(self) -> "ScoredRows":
        """The same rows as those of a single domain."""
        gaps = self.class_gaps
        return replace(
            self,
            codes=np.zeros_like(self.codes),
            class_gaps=None if gaps is None else gaps.sum(axis=0, keepdims=True),
        )

    def sums(self, n_bins: int, n_domains: int = 1) -> np.ndarray:
        """What `ScoreSums` are made of, a line for each domain."""
        masked = np.isinf(self.rows.log_loss)
        losses = np.where(masked, 0.0, self.rows.log_loss)
        columns = (None, masked, losses, self.rows.brier, self.top_brier)
        totals = [np.bincount(self.codes, column, n_domains) for column in columns]
        bins = bin_rows(
            self.correct, self.confidence, n_bins, codes=self.codes, n_groups=n_domains
        )
        gaps = np.empty((n_domains, 0)) if self.class_gaps is None else self.class_gaps
        lines = np.transpose(totals), *bins, gaps.reshape(n_domains, -1)
        return np.concatenate(lines, axis=1)


def score_calibrated(
    calibrator: Any,
    logits: np.ndarray,
    labels: np.ndarray,
    features: Any = None,
    *,
    n_bins: int | None = None,
    codes: np.ndarray | None = None,
    n_domains: int = 1,
) -> ScoredRows:
    """Score labelled rows by a fitted calibrator.

    With a temperature the (n_samples, n_classes) probabilities are never built.

    Parameters
    ----------
    calibrator : fitted, or None
        None is the uncalibrated classifier.
    logits : ndarray of shape (n_samples, n_classes)
    labels : ndarray of shape (n_samples,)
    features : ndarray of shape (n_samples, n_features), default=None
    n_bins : int, default=None
        Bins of the class-wise errors; None leaves them out.
    codes : ndarray of shape (n_samples,), default=None
        Domain of each row.
    n_domains : int, default=1
    """
    codes = np.zeros(len(labels), np.intp) if codes is None else codes
    bins, add = None, None
    if n_bins is not None:
        bins = ClassBins(labels, codes, n_domains, logits.shape[1], n_bins)
        add = bins.add
    temperature = None
    if calibrator is None or hasattr(calibrator, "temperature"):
        temperature = np.ones(len(labels))
        if calibrator is not None:
            temperature = calibrator.temperature(logits, features)
        offsets = getattr(calibrator, "class_offsets_", None)
        rows = score_rows(logits, labels, temperature, offsets, each=add)
    else:
        probabilities = calibrator.predict_proba(logits, features)
        rows = _score_probabilities(labels, probabilities, add)
        rows.log_loss[masked_rows(logits, labels)] = np.inf
    gaps = None if bins is None else bins.gaps
    return ScoredRows(rows, labels, temperature, codes, gaps)


def _score_probabilities(
    labels: np.ndarray, probabilities: np.ndarray, add: Callable | None
) -> RowScores:
    """What `score_rows` gives of z / T, of the probabilities of any other method."""
    if add is not None:
        for rows in row_blocks(*probabilities.shape):
            block = probabilities[rows].astype(np.float64, copy=False)
            add(rows, block, np.ones(len(block)))
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    return RowScores(
        np.minimum(probabilities.max(axis=1), 1).astype(np.float64),
        probabilities.argmax(axis=1),
        # A zero of a method, of a class that is not masked, is a very large loss.
        -np.log(np.maximum(own, np.finfo(np.float64).tiny)),
        brier_scores(labels, probabilities),
    )


class ScoreSums:
    """Sums over the rows of a domain, and the scores that follow from them.

    Parameters
    ----------
    line : ndarray
        A line of `ScoredRows.sums`, or the sum of such lines.
    n_bins : int
    """

    def __init__(self, line: np.ndarray, n_bins: int):
        totals, bins, gaps = np.split(line, [5, 5 + 4 * n_bins])
        n_rows, masked, self.log_loss, self.brier, self.top_brier = totals.tolist()
        self.n_rows, self.n_masked = int(n_rows), int(masked)
        self.bins = ConfidenceBins(*bins.reshape(4, n_bins))
        self.class_errors = np.abs(gaps.reshape(-1, n_bins)).sum(axis=1) / n_rows

    @property
    def finite_log_loss(self) -> float:
        """Mean log loss of the rows whose class has a probability above zero."""
        finite = self.n_rows - self.n_masked
        return self.log_loss / finite if finite else float("inf")

    def scores(self) -> dict[str, float]:
        """Every score of `POINT_SCORES` by its name."""
        return {name: float(score(self)) for name, score in POINT_SCORES.items()}


POINT_SCORES: dict[str, Callable[[ScoreSums], float]] = {
    "accuracy": lambda sums: sums.bins.correct.sum() / sums.n_rows,
    "confidence": lambda sums: sums.bins.confidence.sum() / sums.n_rows,
    "ece": lambda sums: sums.bins.error,
    "ece_debiased": lambda sums: sums.bins.debiased_error(),
    "ece_max": lambda sums: sums.bins.maximum_error,
    "ece_null": lambda sums: sums.bins.null_error(),
    "ece_classwise": lambda sums: sums.class_errors.mean(),
    "signed_gap": lambda sums: -sums.bins.gap.sum() / sums.n_rows,
    "nll": lambda sums: sums.finite_log_loss,
    "brier": lambda sums: sums.brier / sums.n_rows,
    "top_brier": lambda sums: sums.top_brier / sums.n_rows,
}
