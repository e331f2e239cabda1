"""scikit-learn's classifiers, and those that follow its manners."""

from typing import Any

import numpy as np

from coolhead.models.outputs import Reading, from_logarithms, from_probabilities
from coolhead.numerics.checks import as_logits


def logits(model: Any, X: Any) -> Reading:
    """Scores; else log-probabilities as the model itself has them, or our own."""
    if hasattr(model, "decision_function"):
        scores = as_logits(model.decision_function(X), "decision_function(X)")
        return Reading(one_per_class(scores, model))
    if hasattr(model, "predict_log_proba"):
        with np.errstate(divide="ignore"):
            return from_logarithms(model.predict_log_proba(X))
    return from_probabilities(model.predict_proba(X), "predict_proba(X)")


def one_per_class(scores: np.ndarray, model: Any) -> np.ndarray:
    """Refuse scores of pairs of classes."""
    wanted = len(getattr(model, "classes_", scores[0]))
    if scores.shape[1] != wanted:
        raise ValueError(
            f"decision_function(X) has {scores.shape[1]} columns for {wanted} classes; "
            "wanted one score per class (e.g. decision_function_shape='ovr')"
        )
    return scores


def leaves(model: Any, X: Any) -> np.ndarray:
    """Trees, forests and gradient boosting say where a row ends up."""
    found = np.asarray(model.apply(X))
    return found.reshape(len(found), -1)
