"""LightGBM: `LGBMClassifier` and `Booster`."""

import re
from typing import Any

import numpy as np

from coolhead.models.outputs import Reading, from_probabilities, sigmoids
from coolhead.numerics.checks import as_logits

BINARY = ("binary", "cross_entropy")


def logits(model: Any, X: Any) -> Reading:
    """Raw scores, in the unit of the objective's own sigmoid or softmax."""
    booster = getattr(model, "booster_", model)
    text = booster.model_to_string(num_iteration=1)
    told = re.search(r"^objective=(\w+)(.*)$", text, re.MULTILINE)
    objective = told[1] if told else "custom"
    if re.search(r"^average_output$", text, re.MULTILINE):
        # A random forest averages probabilities; it has no scores before them.
        return from_probabilities(booster.predict(X), "predict(X)")
    slope = re.search(r"sigmoid:(\S+)", told[2]) if told else None
    scores = np.asarray(model.predict(X, raw_score=True))
    scores = scores * float(slope[1]) if slope else scores
    if objective == "multiclassova":
        return sigmoids(scores)
    if objective not in (*BINARY, "multiclass", "custom"):
        raise ValueError(
            f"the objective of this LightGBM model is {objective}; wanted one of "
            "classification: binary, multiclass, multiclassova"
        )
    return Reading(as_logits(scores, "predict(X, raw_score=True)"))


def leaves(model: Any, X: Any) -> np.ndarray:
    """One leaf per tree; several classes have one tree each per round."""
    return np.asarray(model.predict(X, pred_leaf=True))
