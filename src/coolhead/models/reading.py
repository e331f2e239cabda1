"""Which family a model is of, and its logits."""

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

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


class Family(NamedTuple):
    """How models of one package are read.

    logits : of (model, X).
    leaves : of (model, X), (n, trees) numbers; None for models without trees.
    """

    logits: Callable[[Any, Any], Reading]
    leaves: Callable[[Any, Any], np.ndarray] | None = None


# By the package that a model's class, or one it inherits from, was defined in.
FAMILIES = {
    "lightgbm": Family(lightgbm_logits, lightgbm_leaves),
    "xgboost": Family(xgboost_logits, xgboost_leaves),
    "catboost": Family(catboost_logits, catboost_leaves),
    "transformers": Family(transformers_logits),
    "keras": Family(keras_logits),
    "torch": Family(torch_logits),
}


def logits_from(
    model: Any,
    X: Any = None,
    *,
    gives: Literal["logits", "probabilities"] | None = None,
    classes: Any = None,
) -> np.ndarray:
    """Logits (n, k) of a model of any make, or out of what it returned.

    Parameters
    ----------
    model : a classifier of scikit-learn (also inside a pipeline, a search or a
        `FrozenEstimator`), LightGBM, XGBoost or CatBoost (estimator or booster, whose
        raw scores are taken), a Keras or torch network, a model, text-classification
        pipeline or `Trainer` of transformers, or any function of X.
        Without X: what a model returned, as an array or tensor, an object or
        dictionary with `logits`, the result of `Trainer.predict`, or a list with the
        scores of every class, ``{class: score}`` or ``[{"label": ..., "score": ...}]``,
        or of the options of every row, be they as many as they like: what a row does
        not have is masked, -inf.
    X : what the model takes; for torch also a `DataLoader`, whose batches may hold
        labels behind the inputs. Networks are run in evaluation mode.
    gives : what a function, or a list of scores, gives. By default logits, but
        probabilities of labels and scores as a pipeline of transformers returns them.
        The other families know.
    classes : the classes of a list of named scores in the order wanted; by default
        sorted, as scikit-learn does, or by number (LABEL_0, LABEL_1, ...).

    Returns
    -------
    (n, k) array, columns in the order of the model's classes; a binary margin m
    becomes [0, m]. Their softmax is what the model says itself. Where a model knows
    probabilities only, these are their logarithms, which have lost what lies nearer to
    0 or 1 than floating point can tell; exact zeros are taken for the smallest step
    below 1, with a warning.

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
    """What a fitted model says of X."""
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
        return family.logits(model, X)
    if hasattr(model, "decision_function") or hasattr(model, "predict_proba"):
        return scikit_learn_logits(model, X)
    if callable(model):
        return read_output(model(X), gives, None, name)
    raise TypeError(
        f"model is a {type(model).__name__}; wanted a classifier with "
        "decision_function or predict_proba, a network, or a function of X"
    )


def unwrapped(model: Any, X: Any) -> tuple[Any, Any]:
    """The model inside a search, a pipeline or a frozen estimator, and its own X."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
            model = model[-1]
        else:
            return model, X


def innermost(model: Any) -> Any:
    """The model inside searches, pipelines and frozen estimators, fitted or not."""
    while True:
        if isinstance(model, Pipeline):
            model = model[-1]
        elif isinstance(model, FrozenEstimator | BaseSearchCV):
            model = model.estimator
        else:
            return model


def leaves_of(model: Any, X: Any) -> np.ndarray:
    """Which leaf of every tree each row falls into, (n, trees).

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
    """How leaves of a model are asked for; a model without trees is refused."""
    model = innermost(model)
    family = FAMILIES.get(package_of(model))
    found = scikit_learn_leaves if family is None else family.leaves
    if found is None or (family is None and not hasattr(model, "apply")):
        raise ValueError(
            f"features is 'leaves', but {type(model).__name__} has no trees to ask; "
            "wanted LightGBM, XGBoost, CatBoost, or trees with apply(X)"
        )
    return found


def package_of(model: Any) -> str:
    """The package of `FAMILIES` that a model belongs to, "" for all others."""
    for kind in type(model).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in FAMILIES:
            return package
    return ""


def without_zeros(found: Reading) -> tuple[np.ndarray, bool]:
    """Logits in which a probability of zero is the smallest step below 1.

    Masked classes, of models that know logits, stay -inf.
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
