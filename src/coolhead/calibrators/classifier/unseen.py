"""Logits of rows that the estimator which made them was not fitted on."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from coolhead.models.reading import cut_message, read_model, without_zeros

FOLDS = 5


class Fitted(NamedTuple):
    """An estimator and the classes it was fitted on, in the order of its scores."""

    estimator: Any
    classes: np.ndarray


class Unseen(NamedTuple):
    """rows : (m,) row numbers; logits : (m, k); known : (m, k) classes trained on.

    A class that a fold's estimator never saw has the lowest logit of its row.
    """

    rows: np.ndarray
    logits: np.ndarray
    known: np.ndarray

    @classmethod
    def of(
        cls, fitted: Fitted, X: Any, rows: np.ndarray, classes: np.ndarray
    ) -> "Unseen":
        logits = estimator_logits(fitted, _safe_indexing(X, rows), classes, warn=True)
        seen = np.isin(classes, fitted.classes)
        return cls(rows, logits, np.broadcast_to(seen, logits.shape))

    def and_also(self, other: "Unseen") -> "Unseen":
        """The rows of both."""
        return Unseen(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def knows(self, codes: np.ndarray) -> np.ndarray:
        """Rows whose label the estimator could have predicted, (m,) bool."""
        known = self.known[np.arange(len(self.rows)), codes[self.rows]]
        if not known.all():
            warnings.warn(
                f"{int((~known).sum())} of {len(known)} rows are left out of the "
                "calibration: their class was absent from the rows the estimator was "
                "fitted on",
                stacklevel=4,
            )
        if not known.any():
            raise ValueError(
                "no row is left to calibrate on: every held-out row has a class the "
                "estimator was not fitted on"
            )
        return known


def estimator_logits(
    fitted: Fitted, X: Any, classes: np.ndarray, *, warn: bool = False
) -> np.ndarray:
    """Logits in the order of `classes`, from scores or from log-probabilities."""
    logits, cut = without_zeros(read_model(fitted.estimator, X))
    if cut and warn:
        warnings.warn(cut_message(fitted.estimator), stacklevel=5)
    if logits.shape[1] != len(fitted.classes):
        raise ValueError(
            f"the estimator gives {logits.shape[1]} scores per row for "
            f"{len(fitted.classes)} classes; wanted one score per class"
        )
    if len(fitted.classes) == len(classes):
        return logits
    aligned = np.repeat(logits.min(axis=1)[:, None], len(classes), axis=1)
    aligned[:, np.searchsorted(classes, fitted.classes)] = logits
    return aligned
