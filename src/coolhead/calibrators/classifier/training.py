"""Estimators fitted on some of the rows, and the logits of those they did not see."""

import warnings
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from coolhead.calibrators.classifier.unseen import Fitted, Unseen
from coolhead.calibrators.data import fresh
from coolhead.models.reading import innermost, package_of

FOLDS = 5


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

    def on_source(self, source: list[Any], *, held_out: bool) -> tuple[Fitted, Unseen]:
        """Fitted on the source; logits of the rest and, out of fold, of the source."""
        inside, rest = split_by_source(self.domains, source)
        fitted = self._fit(inside)
        away = Unseen.of(fitted, self.X, rest, self.classes)
        if not held_out or self._is_frozen:
            return fitted, away
        return fitted, away.and_also(self._out_of_fold(inside, None))

    def on_all(self) -> tuple[Fitted, Unseen]:
        """Fitted on every row; logits from fits on the other folds."""
        everything = np.arange(len(self.y))
        if self._is_frozen:
            fitted = self._fit(everything)
            return fitted, Unseen.of(fitted, self.X, everything, self.classes)
        unseen = self._out_of_fold(everything, self.domains)
        return self._fit(everything), unseen

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _fit(self, rows: np.ndarray) -> Fitted:
        if self._is_frozen:
            return frozen_estimator(self.estimator, self.classes)
        takes_weights = has_fit_parameter(self.estimator, "sample_weight")
        own = None
        if self.weights is not None and takes_weights:
            own = self.weights[rows]
        return fit_estimator(self.estimator, self._part(rows), self.y[rows], own)

    def _part(self, rows: np.ndarray) -> Any:
        return self.X if len(rows) == len(self.y) else _safe_indexing(self.X, rows)

    def _out_of_fold(self, rows: np.ndarray, domains: np.ndarray | None) -> Unseen:
        """Logits of these rows from estimators fitted on the other folds of them."""
        own = None if domains is None else domains[rows]
        part, y = self._part(rows), self.y[rows]
        folds = _folds(part, y, own, self.cv, self.random_state)
        for inside, _ in folds:
            _check_classes(y[inside])
        parts = [
            Unseen.of(self._fit(rows[inside]), self.X, rows[outside], self.classes)
            for inside, outside in folds
        ]
        return Unseen(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def fit_estimator(
    estimator: Any, X: Any, y: np.ndarray, sample_weight: np.ndarray | None
) -> Fitted:
    """A fresh copy, fitted; XGBoost takes classes by number only."""
    classes, codes = np.unique(y, return_inverse=True)
    package = package_of(innermost(estimator))
    # CatBoost copies lists such as cat_features, which `clone` takes for a change.
    copied = deepcopy(estimator) if package == "catboost" else fresh(estimator)
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    numbered = package == "xgboost"
    return Fitted(copied.fit(X, codes if numbered else y, **extra), classes)


def frozen_estimator(estimator: Any, classes: np.ndarray) -> Fitted:
    """An estimator that is used as it is; it must know some of the classes."""
    own = np.asarray(estimator.classes_)
    if not np.isin(own, classes).all():
        raise ValueError(
            f"the estimator knows the classes {own[:5].tolist()}, y holds "
            f"{classes[:5].tolist()}; wanted the labels it was fitted with"
        )
    return Fitted(estimator, own)


def split_by_source(domains: Any, source: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the source domains, and all other rows."""
    if domains is None:
        raise ValueError("sample_domain is missing: source= names domains to fit on")
    names = np.unique(domains)
    wanted = np.atleast_1d(np.asarray(source))
    missing = [name for name in wanted.tolist() if name not in names.tolist()]
    if missing or not len(wanted):
        raise ValueError(
            f"source names {missing or 'no domain'}; sample_domain has {names.tolist()}"
        )
    inside = np.isin(domains, wanted)
    if inside.all():
        raise ValueError(
            f"source is {wanted.tolist()}, which is every domain; wanted at least one "
            "other domain to calibrate on"
        )
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def _check_classes(y: np.ndarray) -> None:
    """Two classes or more in every fold, before the first is fitted."""
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"Classifier can't train when only one class is present: a fold of "
            f"{len(y)} training rows holds the class {y[0]} alone; wanted 2 or more "
            "classes"
        )


def _folds(X: Any, y: np.ndarray, domains: Any, cv: Any, random_state: Any) -> list:
    if cv is None and domains is not None and len(np.unique(domains)) > 1:
        return list(LeaveOneGroupOut().split(X, y, domains))
    if cv is None:
        smallest = np.unique(y, return_counts=True)[1].min()
        cv = StratifiedKFold(
            int(np.clip(smallest, 2, FOLDS)), shuffle=True, random_state=random_state
        )
    with warnings.catch_warnings():
        # A class with a single member can only be in one fold; `knows` reports it.
        warnings.filterwarnings("ignore", message="The least populated class")
        splitter: Any = check_cv(cv, y, classifier=True)
        return list(splitter.split(X, y, domains))
