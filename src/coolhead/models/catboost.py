"""CatBoost: `CatBoostClassifier` and `CatBoost`."""

from typing import Any

import numpy as np

from coolhead.models.outputs import Reading, sigmoids
from coolhead.numerics.checks import as_logits

CLASSIFIES = ("Logloss", "CrossEntropy", "MultiClass")


def logits(model: Any, X: Any) -> Reading:
    """Raw formula values, before the sigmoid or softmax of the loss function."""
    loss = str(model.get_all_params()["loss_function"]).partition(":")[0]
    found = model.predict(X, prediction_type="RawFormulaVal")
    if loss == "MultiClassOneVsAll":
        return sigmoids(found)
    if loss not in CLASSIFIES:
        raise ValueError(
            f"the loss function of this CatBoost model is {loss}; wanted one of "
            f"classification: {', '.join(CLASSIFIES)}"
        )
    return Reading(as_logits(found, "predict(X, prediction_type='RawFormulaVal')"))


def leaves(model: Any, X: Any) -> np.ndarray:
    """One leaf per tree."""
    return np.asarray(model.calc_leaf_indexes(X))
