"""Logits of rows that the estimator which made them was not fitted on."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from coolhead.calibrators.data import fresh
from coolhead.calibrators.parameters import check_parameters
from coolhead.models.reading import (
    cut_message,
    innermost,
    package_of,
    read_model,
    without_zeros,
)

FOLDS = 5


class Fitted(NamedTuple):
    """An estimator and the classes it was fitted on, in the order of its scores."""

    estimator: Any
    classes: np.ndarray


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


def check_parts(estimator: Any, calibrator: Any) -> None:
    """Refuse what cannot be an estimator or a calibrator, before anything is fitted."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator is {_told(estimator)}; wanted a classifier as scikit-learn "
            "knows them, such as LogisticRegression()"
        )
    known = not isinstance(calibrator, type) and hasattr(calibrator, "uses_features")
    if calibrator is not None and not known:
        raise TypeError(
            f"calibrator is {_told(calibrator)}; wanted a calibrator of coolhead, such "
            "as TemperatureScaling(), or None for AutoCalibrator()"
        )


def check_reach(calibrator: Any, domains: Any) -> None:
    """Refuse, before anything is fitted, a calibrator that could not be."""
    check_parameters(calibrator)
    name = type(calibrator).__name__
    if "target" in calibrator.needs:
        raise ValueError(
            f"calibrator is a {name}, which needs unlabelled rows of the target; "
            "wanted one that labelled rows are enough for, such as AutoCalibrator()"
        )
    if "domains" in calibrator.needs and domains is None:
        raise ValueError(
            f"sample_domain is missing: {name} learns from the difference between "
            "domains; wanted one domain per row"
        )


def _told(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else repr(value)


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


def left_out_logits(
    fit_on: Callable[[np.ndarray], Fitted],
    X: Any,
    y: np.ndarray,
    domains: Any,
    rows: np.ndarray,
    classes: np.ndarray,
    cv: Any,
    random_state: Any,
) -> Unseen:
    """Logits of these rows from an estimator fitted on the other folds of them."""
    inner = X if len(rows) == len(y) else _safe_indexing(X, rows)
    own = None if domains is None else domains[rows]
    folds = _folds(inner, y[rows], own, cv, random_state)
    for inside, _ in folds:
        _check_classes(y[rows[inside]])
    parts = [
        Unseen.of(fit_on(rows[inside]), X, rows[outside], classes)
        for inside, outside in folds
    ]
    return Unseen(*(np.concatenate(column) for column in zip(*parts, strict=True)))


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
