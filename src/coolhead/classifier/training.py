"""Estimators fitted on some of the rows, and the logits of the rows they did not see.

A class that an estimator was not fitted on has the logit -inf: probability zero.
"""

import warnings
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    BaseCrossValidator,
    BaseShuffleSplit,
    FixedThresholdClassifier,
    LeaveOneGroupOut,
    PredefinedSplit,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    check_cv,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from coolhead.calibrators.data import find_domains, fresh
from coolhead.calibrators.select import LeaveOneDomainOut
from coolhead.models.reading import (
    cut_message,
    innermost,
    package_of,
    read_model,
    without_zeros,
)
from coolhead.numerics.classes import class_positions, unique_classes

FOLDS = 5
# Agreement of the largest score with `predict`, on this many rows at most.
COMPARED_ROWS = 1000
LEAST_AGREEMENT, USUAL_AGREEMENT = 0.80, 0.95


class Fitted(NamedTuple):
    """An estimator and the classes it was fitted on, in the order of its scores."""

    estimator: Any
    classes: np.ndarray


class HeldOut(NamedTuple):
    """Row numbers, and their logits by estimators that were not fitted on them.

    agrees : for some rows, whether the largest logit is the class that was predicted.
    """

    rows: np.ndarray
    logits: np.ndarray
    agrees: np.ndarray


@dataclass(frozen=True)
class EstimatorFits:
    """The rows that an estimator is fitted on.

    X, y, domains, weights : of all rows, the last two or None; classes : in y.
    cv, random_state : of the folds, see `CalibratedClassifier`.
    """

    estimator: Any
    X: Any
    y: np.ndarray
    domains: np.ndarray | None
    weights: np.ndarray | None
    classes: np.ndarray
    cv: Any
    random_state: Any

    def on_source(self, source: list[Any], *, held_out: bool) -> tuple[Fitted, HeldOut]:
        """Fit on the source; logits of the rest and, out of fold, of the source."""
        inside, rest = split_by_source(self.domains, source)
        fitted = self._fit(inside)
        found = [self._held_out(fitted, rest)]
        if held_out and not self._is_frozen:
            found += self._out_of_fold(inside, by_domain=False)
        return fitted, self._joined(found)

    def on_all(self) -> tuple[Fitted, HeldOut]:
        """Fit on every row; logits from fits on the other folds."""
        everything = np.arange(len(self.y))
        if self._is_frozen:
            fitted = self._fit(everything)
            return fitted, self._joined([self._held_out(fitted, everything)])
        found = self._joined(self._out_of_fold(everything, by_domain=True))
        return self._fit(everything), found

    @cached_property
    def _weight_keys(self) -> list[str]:
        return weight_keys(self.estimator)

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _fit(self, rows: np.ndarray) -> Fitted:
        if self._is_frozen:
            return frozen_estimator(self.estimator, self.classes)
        extra = {}
        if self.weights is not None:
            extra = dict.fromkeys(self._weight_keys, self.weights[rows])
        return fit_estimator(self.estimator, self._part(rows), self.y[rows], extra)

    def _part(self, rows: np.ndarray) -> Any:
        return self.X if len(rows) == len(self.y) else _safe_indexing(self.X, rows)

    def _held_out(self, fitted: Fitted, rows: np.ndarray) -> HeldOut:
        """Logits of rows that `fitted` did not see, compared with its predictions."""
        part = self._part(rows)
        logits = estimator_logits(fitted, part, self.classes, warn=True)
        agrees = compare_predictions(fitted, part, logits, self.classes)
        return HeldOut(rows, logits, agrees)

    def _joined(self, parts: list[HeldOut]) -> HeldOut:
        """All held-out rows; one fold alone may be too small to judge scores by."""
        columns = zip(*parts, strict=True)
        found = HeldOut(*(np.concatenate(column) for column in columns))
        check_agreement(innermost(self.estimator), found.agrees)
        return found

    def _out_of_fold(self, rows: np.ndarray, *, by_domain: bool) -> list[HeldOut]:
        """Logits of these rows from estimators fitted on the other folds of them.

        by_domain : whether the default folds leave one domain out at a time.
        """
        own = None if self.domains is None else self.domains[rows]
        part, y, cv = self._part(rows), self.y[rows], self.cv
        several = own is not None and len(np.unique(own)) > 1
        if cv is None and by_domain and several:
            cv = LeaveOneGroupOut()
        if own is not None and not several and _needs_domains(cv):
            cv = None  # one domain cannot be split by domains
        folds = find_folds(part, y, own, cv, self.random_state)
        for inside, outside in folds:
            _check_fold(y, inside, outside)
        return [
            self._held_out(self._fit(rows[inside]), rows[outside])
            for inside, outside in folds
        ]


def fit_estimator(
    estimator: Any, X: Any, y: np.ndarray, extra: dict[str, np.ndarray]
) -> Fitted:
    """Fit a fresh copy; XGBoost takes classes by number only."""
    classes, codes = unique_classes(y)
    package = package_of(innermost(estimator))
    # CatBoost copies lists such as cat_features, which `clone` takes for a change.
    copied = deepcopy(estimator) if package == "catboost" else fresh(estimator)
    numbered = package == "xgboost"
    fitted = copied.fit(X, codes if numbered else y, **extra)
    own = np.asarray(getattr(fitted, "classes_", classes))
    if numbered or (class_positions(own, classes) < 0).any():
        own = classes
    return Fitted(fitted, own)


def weight_keys(estimator: Any) -> list[str]:
    """Return the argument of `fit` that brings sample weights to the estimator.

    Empty, with a warning, where scikit-learn cannot bring them there.
    """
    key = _weight_key(estimator)
    if key is not None:
        return [key]
    name = type(innermost(estimator)).__name__
    hint = ""
    if _is_routed() and has_fit_parameter(innermost(estimator), "sample_weight"):
        hint = f"; request them with {name}.set_fit_request(sample_weight=True)"
    warnings.warn(
        f"{name} does not take sample_weight here, so the weights are used for the "
        f"calibration only, not for fitting the estimator{hint}",
        stacklevel=2,
    )
    return []


def _weight_key(estimator: Any) -> str | None:
    name = "sample_weight"
    if _is_routed():
        routing = get_routing_for_object(estimator)
        return name if routing.consumes("fit", [name]) else None
    if has_fit_parameter(estimator, name):
        return name
    if isinstance(estimator, Pipeline):
        last, step = estimator.steps[-1]
        key = None if step in (None, "passthrough") else _weight_key(step)
        return None if key is None else f"{last}__{key}"
    if isinstance(estimator, BaseSearchCV):
        return _weight_key(estimator.estimator)
    if isinstance(estimator, VotingClassifier | StackingClassifier):
        parts = [part for _, part in estimator.estimators if part != "drop"]
        parts.append(getattr(estimator, "final_estimator", None))
        takes = [part is None or has_fit_parameter(part, name) for part in parts]
        return name if all(takes) else None
    return None


def _is_routed() -> bool:
    return bool(get_config()["enable_metadata_routing"])


def frozen_estimator(estimator: Any, classes: np.ndarray) -> Fitted:
    """Return an estimator that is not refitted; it must know some of the classes."""
    own = np.asarray(estimator.classes_)
    if (class_positions(own, classes) < 0).any():
        raise ValueError(
            f"the estimator knows the classes {own[:5].tolist()}, y holds "
            f"{classes[:5].tolist()}; wanted the labels it was fitted with"
        )
    return Fitted(estimator, own)


def estimator_logits(
    fitted: Fitted, X: Any, classes: np.ndarray, *, warn: bool = False
) -> np.ndarray:
    """Return logits in the order of `classes`, -inf for a class it does not know."""
    logits, cut = without_zeros(read_model(fitted.estimator, X))
    if cut and warn:
        warnings.warn(cut_message(fitted.estimator), stacklevel=5)
    if logits.shape[1] != len(fitted.classes):
        raise ValueError(
            f"the estimator gives {logits.shape[1]} scores per row for "
            f"{len(fitted.classes)} classes; wanted one score per class"
        )
    places = class_positions(fitted.classes, classes)
    if np.array_equal(places, np.arange(len(classes))):
        return logits
    aligned = np.full((len(logits), len(classes)), -np.inf, logits.dtype)
    aligned[:, places] = logits
    return aligned


def compare_predictions(
    fitted: Fitted, X: Any, logits: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """Return, for some rows, whether the largest score is the predicted class.

    Classifiers with a threshold of their own disagree on purpose and are left out.
    """
    model = innermost(fitted.estimator)
    thresholds = (TunedThresholdClassifierCV, FixedThresholdClassifier)
    if isinstance(model, thresholds) or not hasattr(fitted.estimator, "predict"):
        return np.empty(0, bool)
    rows = np.arange(0, len(logits), max(1, len(logits) // COMPARED_ROWS))
    predicted = np.ravel(fitted.estimator.predict(_safe_indexing(X, rows)))
    if package_of(model) == "xgboost":
        predicted = fitted.classes[predicted.astype(np.intp)]
    return class_positions(predicted, classes) == logits[rows].argmax(axis=1)


def check_agreement(model: Any, agrees: np.ndarray) -> None:
    """Refuse scores whose largest is not the class that the estimator predicts.

    Scores of pairs of classes, as inside a bagging of such classifiers, pass for scores
    of classes where there are three.
    """
    share = float(agrees.mean()) if len(agrees) else 1.0
    if share >= USUAL_AGREEMENT:
        return
    found = (
        f"the largest score of {type(model).__name__} is the class it predicts in "
        f"{share:.0%} of {len(agrees)} held-out rows"
    )
    if share >= LEAST_AGREEMENT:
        warnings.warn(
            f"{found}; the calibrated class is the one of the scores", stacklevel=5
        )
        return
    raise ValueError(
        f"{found}; wanted one score per class, in the order of classes_, and none of "
        "pairs of classes (decision_function_shape='ovo')"
    )


def split_by_source(domains: Any, source: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the source domains, and all other rows."""
    inside = find_domains(domains, source).source_rows
    if inside.all() or not inside.any():
        raise ValueError(
            f"source is {source}, which is every domain or none; wanted some domains "
            "to fit on and at least one other to calibrate on"
        )
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def find_folds(X: Any, y: np.ndarray, domains: Any, cv: Any, random_state: Any) -> list:
    """Return (rows to fit on, rows left out) of every fold."""
    if cv is None:
        smallest = np.bincount(unique_classes(y)[1]).min()
        cv = StratifiedKFold(
            int(np.clip(smallest, 2, FOLDS)), shuffle=True, random_state=random_state
        )
    with warnings.catch_warnings():
        # A class with a single member can only be in one fold: its row is left out.
        warnings.filterwarnings("ignore", message="The least populated class")
        chosen: Any = cv
        splitter: Any = check_cv(chosen, y, classifier=True)
        known = isinstance(splitter, BaseCrossValidator | BaseShuffleSplit)
        needs = _needs_domains(splitter)
        if needs and domains is None:
            name = type(splitter).__name__
            raise ValueError(f"sample_domain is missing: cv={name} splits by domain")
        groups = domains if needs or not known else None
        folds = list(splitter.split(X, y, groups))
    if not folds:
        raise ValueError("cv gives no fold (a generator gives each once); wanted one")
    return folds


def kept_folds(cv: Any, kept: np.ndarray, n_rows: int) -> Any:
    """Return folds given as row numbers in terms of the rows that are kept."""
    if isinstance(cv, PredefinedSplit):
        cv = cv.split()
    if cv is None or isinstance(cv, int) or hasattr(cv, "split"):
        return cv
    place = np.full(n_rows, -1)
    place[kept] = np.arange(len(kept))
    folds = [[place[rows] for rows in fold] for fold in cv]
    return [[rows[rows >= 0] for rows in fold] for fold in folds]


def _needs_domains(cv: Any) -> bool:
    return isinstance(cv, GroupsConsumerMixin | LeaveOneDomainOut)


def _check_fold(y: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> None:
    """Refuse a fold that shares rows, or has one class, before the first is fitted."""
    try:
        inside, outside = (np.arange(len(y))[rows] for rows in (inside, outside))
    except IndexError as error:
        raise ValueError(
            f"cv names rows that are not there ({error}); wanted numbers of the "
            f"{len(y)} rows that are split (with source, those of its domains)"
        ) from error
    shared = np.intersect1d(inside, outside)
    if len(shared):
        raise ValueError(
            f"cv gives a fold whose {len(inside)} training rows hold {len(shared)} of "
            f"its {len(outside)} calibration rows (row {shared[0]}); wanted rows that "
            "the estimator was not fitted on"
        )
    if len(unique_classes(y[inside])[0]) < 2:
        raise ValueError(
            f"Classifier can't train when only one class is present: a fold of "
            f"{len(inside)} training rows holds the class {y[inside][0]} alone; wanted "
            "2 or more classes"
        )
