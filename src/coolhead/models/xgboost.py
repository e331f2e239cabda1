"""XGBoost: `XGBClassifier` and `Booster`."""

import json
from typing import Any

import numpy as np

from coolhead.models.outputs import Reading
from coolhead.numerics.checks import as_logits

CLASSIFIES = ("binary:logistic", "binary:logitraw", "reg:logistic", "multi:")


def logits(model: Any, X: Any) -> Reading:
    """Margins, before the sigmoid or softmax of the objective."""
    booster = getattr(model, "get_booster", lambda: model)()
    config = json.loads(booster.save_config())
    objective = config["learner"]["objective"]["name"]
    if not objective.startswith(CLASSIFIES):
        raise ValueError(
            f"the objective of this XGBoost model is {objective}; wanted one of "
            "classification: binary:logistic, multi:softprob"
        )
    if booster is model:
        found = booster.predict(_matrix(X), output_margin=True)
    else:
        found = model.predict(X, output_margin=True)
    return Reading(as_logits(found, "predict(X, output_margin=True)"))


def leaves(model: Any, X: Any) -> np.ndarray:
    """One leaf per tree; several classes have one tree each per round."""
    if hasattr(model, "get_booster"):
        found = np.asarray(model.apply(X))
    else:
        found = np.asarray(model.predict(_matrix(X), pred_leaf=True))
    return found.reshape(len(found), -1)


def _matrix(X: Any) -> Any:
    import xgboost

    if isinstance(X, xgboost.DMatrix):
        return X
    return xgboost.DMatrix(X, enable_categorical=True)
