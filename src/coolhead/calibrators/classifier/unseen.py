"""Logits of rows that the estimator which made them was not fitted on."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from coolhead.numerics.checks import (
    as_logits,
    check_features,
    logits_from_probabilities,
)

FOLDS = 5


class Unseen(NamedTuple):
    """rows : (m,) row numbers; logits : (m, k); known : (m, k) classes trained on.

    A class that a fold's estimator never saw has the lowest logit of its row.
    """

    rows: np.ndarray
    logits: np.ndarray
    known: np.ndarray

    @classmethod
    def of(
        cls, estimator: Any, X: Any, rows: np.ndarray, classes: np.ndarray
    ) -> "Unseen":
        logits = estimator_logits(estimator, _safe_indexing(X, rows), classes)
        seen = np.isin(classes, estimator.classes_)
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


def estimator_logits(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Logits in the order of `classes`, from scores or from log-probabilities."""
    if hasattr(estimator, "decision_function"):
        logits = as_logits(estimator.decision_function(X), "decision_function(X)")
    else:
        logits = logits_from_probabilities(estimator.predict_proba(X))
    if logits.shape[1] != len(estimator.classes_):
        raise ValueError(
            f"decision_function(X) has {logits.shape[1]} columns for "
            f"{len(estimator.classes_)} classes; wanted one score per class "
            "(e.g. decision_function_shape='ovr')"
        )
    if len(estimator.classes_) == len(classes):
        return logits
    aligned = np.repeat(logits.min(axis=1)[:, None], len(classes), axis=1)
    aligned[:, np.searchsorted(classes, estimator.classes_)] = logits
    return aligned


def estimator_features(
    estimator: Any, X: Any, features: str | Callable | None
) -> np.ndarray:
    """What the calibrator sees: X, the output of a pipeline step, or a function."""
    if callable(features):
        found = features(estimator, X)
    elif features is None:
        found = X
    else:
        found = _step_output(estimator, X, features)
    return dense_features(found)


def dense_features(found: Any) -> np.ndarray:
    """A finite (n, d) array; anything else is refused with what to do instead."""
    remedy = (
        "give features= the name of a pipeline step or a function that makes one, or "
        "take a calibrator without features, such as TemperatureScaling()"
    )
    if hasattr(found, "toarray"):
        raise ValueError(
            "the features of this calibrator would be a sparse matrix; wanted a dense "
            f"(n, d) array: {remedy}"
        )
    try:
        return check_features(found, None, name="X")
    except (ValueError, TypeError) as error:
        told = f"{error} These would be the features of the calibrator: {remedy}"
        raise type(error)(told) from error


def _step_output(estimator: Any, X: Any, name: str) -> Any:
    pipeline = getattr(estimator, "estimator", estimator)  # inside a FrozenEstimator
    steps = getattr(pipeline, "named_steps", None)
    if steps is None or name not in steps:
        raise ValueError(
            f"features is {name!r}; wanted the name of a pipeline step"
            + (f", one of {list(steps)}" if steps else ", but there is no pipeline")
        )
    return pipeline[: list(steps).index(name) + 1].transform(X)


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
    fit_on: Callable[[np.ndarray], Any],
    X: Any,
    y: np.ndarray,
    domains: Any,
    rows: np.ndarray,
    classes: np.ndarray,
    cv: Any,
    random_state: Any,
) -> Unseen:
    """Logits of these rows from an estimator fitted on the other folds of them."""
    parts = []
    inner = X if len(rows) == len(y) else _safe_indexing(X, rows)
    own = None if domains is None else domains[rows]
    for inside, outside in _folds(inner, y[rows], own, cv, random_state):
        train, test = rows[inside], rows[outside]
        if len(np.unique(y[train])) < 2:
            raise ValueError(
                f"Classifier can't train when only one class is present: a fold of "
                f"{len(train)} training rows holds the class {y[train][0]!r} alone; "
                "wanted 2 or more classes"
            )
        parts.append(Unseen.of(fit_on(train), X, test, classes))
    return Unseen(*(np.concatenate(column) for column in zip(*parts, strict=True)))


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
