"""What `CalibratedClassifier` accepts."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.base import PredictionDetails
from coolhead.calibrators.data import (
    CalibrationData,
    find_domains,
    fit_with,
    fresh,
)
from coolhead.calibrators.evidence import Evidence, keep_evidence
from coolhead.calibrators.fitted import FittedMethods
from coolhead.calibrators.parameters import check_parameters
from coolhead.classifier.features import (
    estimator_features,
    prepare_features,
    prepare_leaves,
    split_column,
    without_column,
)
from coolhead.classifier.training import (
    EstimatorFits,
    Fitted,
    HeldOut,
    estimator_logits,
    kept_folds,
)
from coolhead.display import SummarisedFit
from coolhead.models.outputs import check_calibrator
from coolhead.numerics.checks import check_domains, refuse_missing
from coolhead.numerics.classes import class_positions, unique_classes
from coolhead.numerics.weights import (
    check_weights,
    masked_message,
    masked_rows,
    weighted_rows,
)


def check_rows(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X as it is, if it has as many rows as y, and y as classes without gaps."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    X, y = indexable(X, y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        refuse_missing(y, "y", "a label")
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return X, y


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


def _calibrator_has_temperature(classifier: CalibratedClassifier) -> bool:
    """Methods that change the class scores have no temperature."""
    calibrator = getattr(classifier, "calibrator_", classifier.calibrator)
    return calibrator is None or hasattr(calibrator, "temperature")


class CalibratedClassifier(
    SummarisedFit, FittedMethods, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """A classifier and a calibrator behind the ordinary `fit(X, y)`.

    The calibrator never sees rows the estimator was fitted on. A class that the
    estimator was not fitted on has probability zero; its rows are left out of the
    calibration, which a warning and `status_` count. Sample weights reach the estimator
    where scikit-learn can route them, also through a pipeline or a search; rows of
    weight zero are as good as absent.

    Parameters
    ----------
    estimator : estimator
        Classifier with `decision_function` or `predict_proba`, read by `logits_from`:
        boosters give their raw scores. A `FrozenEstimator` is never refitted.
    calibrator : Calibrator, default=None
        None stands for `AutoCalibrator()`.
    source : list of str, default=None
        Names of the domains the estimator is fitted on; the calibrator is fitted on
        all others. A calibrator that takes them also receives out-of-fold logits of
        the source and the features of its rows. None fits the estimator on all rows
        and the calibrator on out-of-fold logits.
    cv : int, splitter or None, default=None
        How those folds are made. None leaves one domain out with `sample_domain`, and
        takes 5 stratified folds without.
    features : {None, "table", "leaves"}, str or callable, default=None
        Features of the calibrator. None: X if it holds finite numbers only, else as
        "table": X prepared by `TablePreparation`, which takes gaps, categories, text
        and dates. "leaves": the leaves of the estimator's trees, in 16 dimensions. Or
        the name of a step of a pipeline (its output), or a function of (estimator, X).
    random_state : int, default=0
        Seed of the default folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in the order of the columns of `predict_proba`.
    estimator_, calibrator_ : estimator and Calibrator
        The fitted parts.
    estimator_classes_ : ndarray of shape (n_classes,)
        Class labels in the order of the estimator's own scores, the columns of the
        calibrator's logits.
    status_ : str
        Status of the calibrator.
    preparation_ : TablePreparation or None
        How features are made of X; None if they are not prepared.
    domain_column_ : str or None
        Name of the column of X that held the domains.
    n_calibration_rows_ : int
        Number of rows the calibrator was fitted on.

    Examples
    --------
    >>> import coolhead as ch
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ch.CalibratedClassifier(LogisticRegression(max_iter=500))
    >>> model.fit(X, y).predict_proba(X[:1]).shape
    (1, 3)
    """

    # Domains are what this estimator is for: routed without being asked.
    __metadata_request__fit: ClassVar = {"sample_domain": True}
    classes_: Any
    estimator_: Any
    estimator_classes_: np.ndarray
    preparation_: Any
    calibrator_: Any
    # None of classifiers that were saved by version 0.2, too.
    domain_column_: str | None = None

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = None,
        *,
        source: list[Any] | None = None,
        cv: Any = None,
        features: str | Callable | None = None,
        random_state: Any = 0,
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.source = source
        self.cv = cv
        self.features = features
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator, then the calibrator on rows the estimator did not see.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_columns)
            Rows of the table.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_domain : array-like of shape (n_samples,) or str, default=None
            Domain of each row, or the name of a column of X that holds it. The
            estimator does not see that column, and prediction does not need it.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0.
        """
        data = self._fit_estimator(X, y, sample_domain, sample_weight)
        fit_with(self.calibrator_, data)
        keep_evidence(self.calibrator_, data)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def calibration_data(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> CalibrationData:
        """Return the calibration data of `fit`, made again with the same folds.

        Out-of-fold logits with features and domains, to evaluate the calibrator on
        left-out domains.
        """
        return fresh(self)._fit_estimator(X, y, sample_domain, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities, (n, k), columns in the order of `classes_`."""
        logits, features = self._query(X)
        return self._all_classes(self.calibrator_.predict_proba(logits, features))

    def predict(self, X: Any) -> np.ndarray:
        """Predicted class labels."""
        _, predicted = self.confidence(X)
        return self.classes_[predicted]

    def confidence(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated confidence and the index of the predicted class, (n,) each."""
        query = self._query(X)
        confidence, column = self.calibrator_.confidence(*query)
        places = class_positions(self.calibrated_classes, self.classes_)
        return confidence, places[column]

    @property
    def calibrated_classes(self) -> np.ndarray:
        """Class labels in the order of the calibrator's columns."""
        known = self.estimator_classes_
        # Version 0.2 gave the calibrator a column for every class of y.
        return known if len(known) == self.calibrator_.n_classes_ else self.classes_

    @property
    def evidence_(self) -> Evidence:
        """What left-out domains showed, for new domains."""
        # Version 0.2 kept it beside the calibrator.
        return vars(self).get("evidence_") or self.calibrator_.evidence_

    @evidence_.setter
    def evidence_(self, evidence: Evidence) -> None:
        self.calibrator_.evidence_ = evidence

    @property
    def status_(self) -> str:
        """How the calibrator was fitted."""
        return self.calibrator_.status_

    @available_if(_calibrator_has_temperature)
    def temperature(self, X: Any) -> np.ndarray:
        """Temperature of each row, (n,)."""
        logits, features = self._query(X)
        return self.calibrator_.temperature(logits, features)

    def details(self, X: Any) -> PredictionDetails:
        """What the calibrator knows about each row of X."""
        query = self._query(X)
        found = self.calibrator_.details(*query)
        return found._replace(probabilities=self._all_classes(found.probabilities))

    def coverage(self, X: Any) -> Any:
        """How far rows of X lie outside the calibration data."""
        check_is_fitted(self)
        return self.calibrator_.coverage(self.features_of(X))

    def features_of(self, X: Any) -> np.ndarray:
        """What a calibrator that uses features sees of X, (n, d)."""
        check_is_fitted(self)
        X = without_column(X, self.domain_column_)
        return estimator_features(self.estimator_, X, self.features, self.preparation_)

    def with_calibrator(self, calibrator: Any) -> Self:
        """Return the same classifier with another fitted calibrator."""
        moved = copy.copy(self)
        moved.calibrator_ = calibrator
        return moved

    def _fit_estimator(
        self, X: Any, y: Any, sample_domain: Any, sample_weight: Any
    ) -> CalibrationData:
        """Check everything, fit the estimator and its folds; rows to calibrate on."""
        usual = AutoCalibrator() if self.calibrator is None else self.calibrator
        self.calibrator_ = fresh(check_calibrator(usual))
        X, y = check_rows(X, y)
        self.domain_column_ = None
        if isinstance(sample_domain, str):
            self.domain_column_ = sample_domain
            X, sample_domain = split_column(X, sample_domain)
        weights = check_weights(sample_weight, len(y))
        domains = (
            None if sample_domain is None else check_domains(sample_domain, len(y))
        )
        cv = self.cv
        kept = weighted_rows(weights)
        if weights is not None and kept is not None:
            cv = kept_folds(cv, kept, len(y))
            X, y, weights = _safe_indexing(X, kept), y[kept], weights[kept]
            domains = None if domains is None else domains[kept]
        self.classes_, codes = unique_classes(y)
        check_reach(self.calibrator_, domains)
        self.preparation_ = None
        if self.calibrator_.uses_features:
            # What would fail after all fits is refused before the first.
            self.preparation_ = prepare_features(self.features, self.estimator, X)
        training = EstimatorFits(
            self.estimator,
            X,
            y,
            domains,
            weights,
            self.classes_,
            cv,
            self.random_state,
        )
        if self.source is None:
            fitted, rows = training.on_all()
        else:
            takes_source = "source" in self.calibrator_.takes
            fitted, rows = training.on_source(self.source, held_out=takes_source)
        self.estimator_, self.estimator_classes_ = fitted
        return self._record(X, codes, domains, weights, rows)

    def _query(self, X: Any) -> tuple[np.ndarray, Any]:
        """Logits of X in the calibrator's columns, and features if it uses them."""
        check_is_fitted(self)
        X = without_column(X, self.domain_column_)
        fitted = Fitted(self.estimator_, self.estimator_classes_)
        logits = estimator_logits(fitted, X, self.calibrated_classes)
        return logits, self._features(X)

    def _all_classes(self, probabilities: Any) -> Any:
        """Columns in the order of `classes_`, zero for an unknown class."""
        places = class_positions(self.calibrated_classes, self.classes_)
        if np.array_equal(places, np.arange(len(self.classes_))):
            return probabilities
        shape = len(probabilities), len(self.classes_)
        every = np.zeros(shape, probabilities.dtype)
        every[:, places] = probabilities
        return every

    def _features(self, X: Any) -> Any:
        if not self.calibrator_.uses_features:
            return None
        return self.features_of(X)

    def _record(
        self, X: Any, codes: np.ndarray, domains: Any, weights: Any, held_out: HeldOut
    ) -> CalibrationData:
        """The held-out rows whose class could be predicted, with all that is known."""
        masked = masked_rows(held_out.logits, codes[held_out.rows])
        n_masked = int(masked.sum())
        if masked.all():
            raise ValueError(
                "no row is left to calibrate on: every held-out row has a class the "
                "estimator was not fitted on"
            )
        if n_masked:
            warnings.warn(masked_message(n_masked, len(masked)), stacklevel=4)
        rows = held_out.rows[~masked]
        self.n_calibration_rows_ = len(rows)
        columns = class_positions(self.estimator_classes_, self.classes_)
        column_of = class_positions(self.classes_, self.estimator_classes_)
        if self.calibrator_.uses_features and self.features == "leaves":
            self.preparation_ = prepare_leaves(self.estimator_, X)
        features: Any = self._features(X)
        own: Any = None if domains is None else domains[rows]
        trained_on, source_rows = None, []
        if self.source is not None:
            source = find_domains(domains, self.source)
            source_rows = np.unique(source.codes[rows][source.source_rows[rows]])
            source_rows = source.names[source_rows].tolist()
            if features is not None:
                trained_on = features[source.source_rows]
        logits = held_out.logits[~masked] if n_masked else held_out.logits
        if not np.array_equal(columns, np.arange(len(self.classes_))):
            logits = logits[:, columns]
        data = CalibrationData.of(
            logits,
            column_of[codes[rows]],
            features=None if features is None else features[rows],
            sample_domain=own,
            source_domain=source_rows or None,
            reference_features=trained_on,
            sample_weight=None if weights is None else weights[rows],
        )
        names = tuple(map(str, self.estimator_classes_.tolist()))
        return replace(data, classes=names, n_masked=n_masked)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        # Clusters need dense features; X itself is one unless a step makes others.
        dense = self.features is None and (
            self.calibrator is None or self.calibrator.uses_features
        )
        tags.input_tags.sparse = inner.sparse and not dense
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.pairwise = inner.pairwise
        tags.input_tags.string = inner.string
        return tags
