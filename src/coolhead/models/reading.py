"""The logits and leaves of any model, by the library of its class."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

from coolhead.models.libraries import (
    catboost_leaves,
    catboost_logits,
    keras_logits,
    lightgbm_leaves,
    lightgbm_logits,
    scikit_learn_leaves,
    scikit_learn_logits,
    torch_logits,
    transformers_logits,
    xgboost_leaves,
    xgboost_logits,
)
from coolhead.models.outputs import Reading, read_output
from coolhead.numerics.checks import check_logit_values

Reader = Callable[[Any, Any], Reading]
Leaves = Callable[[Any, Any], np.ndarray]

# By the package that defines the class of a model, or a class it inherits from: the
# reader of logits, and that of leaves if there are trees.
FAMILIES: dict[str, tuple[Reader, Leaves | None]] = {
    "lightgbm": (lightgbm_logits, lightgbm_leaves),
    "xgboost": (xgboost_logits, xgboost_leaves),
    "catboost": (catboost_logits, catboost_leaves),
    "transformers": (transformers_logits, None),
    "keras": (keras_logits, None),
    "torch": (torch_logits, None),
}


def logits_from(
    model: Any,
    X: Any = None,
    *,
    gives: Literal["logits", "probabilities"] | None = None,
    classes: Any = None,
) -> np.ndarray:
    """Return the logits (n, k) of a model of any library, or of its output.

    Parameters
    ----------
    model : object
        A classifier of scikit-learn (also inside a pipeline, a search or a
        `FrozenEstimator`), LightGBM, XGBoost or CatBoost (estimator or booster, whose
        raw scores are taken), a Keras or torch network, a model, text-classification
        pipeline or `Trainer` of transformers, or any function of X.
        Without X: the output of a model, as an array or tensor, an object or
        dictionary with `logits`, the result of `Trainer.predict`, or a list with the
        scores of every class, ``{class: score}`` or ``[{"label": ..., "score": ...}]``,
        or of the options of every row, in any number: missing options are masked, -inf.
    X : array-like, table or DataLoader, default=None
        The input of the model; batches of a `DataLoader` may hold labels behind the
        inputs. Networks are run in evaluation mode.
    gives : {"logits", "probabilities"}, default=None
        Output of a function, or content of a list of scores. By default logits, but
        probabilities of labels and scores as a pipeline of transformers returns them.
        Other models need no hint.
    classes : sequence of str, default=None
        The classes of a list of named scores in the order wanted; by default sorted,
        as in scikit-learn, or by number (LABEL_0, LABEL_1, ...).

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Columns in the order of the model's classes; a binary margin m becomes [0, m].
        Their softmax equals the model's own probabilities. Of models with probabilities
        only, these are logarithms, without the digits that floating point loses near 0
        and 1; exact zeros become the smallest step below 1, with a warning.

    Examples
    --------
    >>> import coolhead as ch
    >>> ch.logits_from([{"no": 0.5, "yes": 2.0}], gives="logits")
    array([[0.5, 2. ]])
    """
    name = f"the output of {type(model).__name__}"
    if X is None:
        found = read_output(model, gives, classes, "the output")
    else:
        model, X = unwrapped(model, X)
        found = _read(model, X, gives, name)
    check_logit_values(found.logits, name)
    logits, cut = without_zeros(found)
    if cut:
        warnings.warn(cut_message(model), stacklevel=2)
    return logits


def read_model(model: Any, X: Any) -> Reading:
    """Return the logits of a fitted model for X."""
    model, X = unwrapped(model, X)
    return _read(model, X, None, f"the output of {type(model).__name__}")


def _read(model: Any, X: Any, gives: str | None, name: str) -> Reading:
    tagged = hasattr(model, "__sklearn_tags__")
    if isinstance(model, type) or (tagged and is_outlier_detector(model)):
        raise TypeError(
            f"model is {model!r}; wanted a fitted classifier, which gives each class a "
            "score"
        )
    family = FAMILIES.get(package_of(model))
    if family is not None:
        return family[0](model, X)
    if hasattr(model, "decision_function") or hasattr(model, "predict_proba"):
        return scikit_learn_logits(model, X)
    if callable(model):
        return read_output(model(X), gives, None, name)
    raise TypeError(
        f"model is a {type(model).__name__}; wanted a classifier with "
        "decision_function or predict_proba, a network, or a function of X"
    )


def unwrapped(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the model inside searches, pipelines and frozen estimators, and its X.

    Without X, the model need not be fitted.
    """
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, FrozenEstimator | BaseSearchCV):
            model = model.estimator
        elif isinstance(model, Pipeline):
            if X is not None and len(model.steps) > 1:
                X = model[:-1].transform(X)
            model = model[-1]
        else:
            return model, X


def innermost(model: Any) -> Any:
    """Return the model inside searches, pipelines and frozen estimators."""
    return unwrapped(model)[0]


def leaves_of(model: Any, X: Any) -> np.ndarray:
    """Return the leaf of every tree that each row reaches, (n, trees).

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> leaves_of(forest, X).shape
    (4, 5)
    """
    model, X = unwrapped(model, X)
    return check_leaves(model)(model, X)


def check_leaves(model: Any) -> Callable[[Any, Any], np.ndarray]:
    """Return the reader of leaves of a model; a model without trees is refused."""
    model = innermost(model)
    family = FAMILIES.get(package_of(model))
    found = scikit_learn_leaves if family is None else family[1]
    if found is None or (family is None and not hasattr(model, "apply")):
        raise ValueError(
            f"features is 'leaves', but {type(model).__name__} has no trees to ask; "
            "wanted LightGBM, XGBoost, CatBoost, or trees with apply(X)"
        )
    return found


def package_of(model: Any) -> str:
    """Return the package of `FAMILIES` that a model belongs to, "" for all others."""
    for kind in type(model).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in FAMILIES:
            return package
    return ""


def without_zeros(found: Reading) -> tuple[np.ndarray, bool]:
    """Return logits in which a probability of zero is the smallest step below 1.

    Masked classes, of models with logits, stay -inf.
    """
    logits = found.logits
    least = np.log(np.finfo(logits.dtype).eps).astype(logits.dtype)
    if not found.from_probabilities or not (logits < least).any():
        return logits, False
    return np.maximum(logits, least), True


def cut_message(model: Any) -> str:
    return (
        f"{type(model).__name__} gives probabilities only, some of them so near 0 "
        "that floating point cannot tell the others from 1: their logits are cut "
        "there; use scores before the softmax where there are any"
    )
