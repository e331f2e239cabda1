"""A scikit-learn classifier whose confidence is calibrated for unseen domains."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.base import PredictionDetails
from coolhead.calibrators.classifier.checks import check_parts, check_reach, check_rows
from coolhead.calibrators.classifier.features import (
    estimator_features,
    prepare_features,
    prepare_leaves,
)
from coolhead.calibrators.classifier.training import EstimatorFits
from coolhead.calibrators.classifier.unseen import Fitted, Unseen, estimator_logits
from coolhead.calibrators.data import CalibrationData, fit_with, fresh
from coolhead.calibrators.left_out import warn_where_worse
from coolhead.numerics.checks import check_domains, check_weights


def _calibrator_has_temperature(classifier: "CalibratedClassifier") -> bool:
    """Methods that change the class scores have no temperature."""
    calibrator = getattr(classifier, "calibrator_", classifier.calibrator)
    return calibrator is None or hasattr(calibrator, "temperature")


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier and a calibrator behind the ordinary `fit(X, y)`.

    The calibrator never sees rows the estimator was fitted on.

    Parameters
    ----------
    estimator : classifier with `decision_function` or `predict_proba`, read by
        `logits_from`: boosters give their raw scores. A `FrozenEstimator` is used as
        it is and never refitted.
    calibrator : any calibrator of coolhead; None stands for `AutoCalibrator()`.
    source : names of the domains the estimator is fitted on; the calibrator is fitted
        on all others. A calibrator that takes them gets out-of-fold logits of the
        source, too, and the features of its rows. None fits the estimator on all rows
        and the calibrator on out-of-fold logits.
    cv : how those folds are made: None (leave one domain out with `sample_domain`,
        else 5 stratified folds), a number of folds, or a splitter.
    features : what the calibrator sees as features. None: X where it holds finite
        numbers only, else as "table": X prepared by `TablePreparation`, which takes
        gaps, categories, text and dates. "leaves": where the estimator's trees put a
        row, in 16 dimensions. Or the name of a step of a pipeline (its output), or a
        function of (estimator, X).
    random_state : of the default folds.

    Attributes
    ----------
    classes_ : class labels in the order of the columns of `predict_proba`.
    estimator_, calibrator_ : the fitted parts.
    estimator_classes_ : class labels in the order of the estimator's own scores.
    preparation_ : how features are made of X; None where they are not prepared.
    n_calibration_rows_ : rows the calibrator was fitted on.

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
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator, then the calibrator on rows the estimator did not see."""
        data = self._fit_estimator(X, y, sample_domain, sample_weight)
        fit_with(self.calibrator_, data)
        warn_where_worse(self.calibrator_, data)
        vars(self).pop("evidence_", None)  # of an earlier fit
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def calibration_data(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> CalibrationData:
        """What the calibrator learns from in `fit`, found again with the same folds.

        Logits of rows by estimators that did not see them, with their features and
        domains: for whoever asks how the calibrator does on left-out domains.
        """
        return fresh(self)._fit_estimator(X, y, sample_domain, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities, (n, k), columns in the order of `classes_`."""
        logits, features = self._query(X)
        return self.calibrator_.predict_proba(logits, features)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted class labels."""
        _, predicted = self.confidence(X)
        return self.classes_[predicted]

    def confidence(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated confidence and the index of the predicted class, (n,) each."""
        logits, features = self._query(X)
        return self.calibrator_.confidence(logits, features)

    @available_if(_calibrator_has_temperature)
    def temperature(self, X: Any) -> np.ndarray:
        """Temperature of each row, (n,)."""
        logits, features = self._query(X)
        return self.calibrator_.temperature(logits, features)

    def details(self, X: Any) -> PredictionDetails:
        """What the calibrator knows about each row of X."""
        return self.calibrator_.details(*self._query(X))

    def coverage(self, X: Any) -> Any:
        """How far rows of X lie outside the calibration data."""
        check_is_fitted(self)
        return self.calibrator_.coverage(self.features_of(X))

    def features_of(self, X: Any) -> np.ndarray:
        """What a calibrator that uses features sees of X, (n, d)."""
        check_is_fitted(self)
        return estimator_features(self.estimator_, X, self.features, self.preparation_)

    def _fit_estimator(
        self, X: Any, y: Any, sample_domain: Any, sample_weight: Any
    ) -> CalibrationData:
        """Check everything, fit the estimator and its folds; rows to calibrate on."""
        check_parts(self.estimator, self.calibrator)
        X, y = check_rows(X, y)
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        n_rows = len(y)
        weights = check_weights(sample_weight, n_rows)
        domains = (
            None if sample_domain is None else check_domains(sample_domain, n_rows)
        )
        self.calibrator_ = fresh(
            AutoCalibrator() if self.calibrator is None else self.calibrator
        )
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
            self.cv,
            self.random_state,
        )
        if self.source is None:
            fitted, unseen = training.on_all()
        else:
            takes_source = "source" in self.calibrator_.takes
            fitted, unseen = training.on_source(self.source, held_out=takes_source)
        self.estimator_, self.estimator_classes_ = fitted
        return self._record(X, encoder.transform(y), domains, weights, unseen)

    def _query(self, X: Any) -> tuple[np.ndarray, Any]:
        check_is_fitted(self)
        fitted = Fitted(self.estimator_, self.estimator_classes_)
        logits = estimator_logits(fitted, X, self.classes_)
        return logits, self._features(X)

    def _features(self, X: Any) -> Any:
        if not self.calibrator_.uses_features:
            return None
        return self.features_of(X)

    def _record(
        self, X: Any, codes: np.ndarray, domains: Any, weights: Any, unseen: Unseen
    ) -> CalibrationData:
        """The unseen rows with all that is known of them."""
        known = unseen.knows(codes)
        rows = unseen.rows[known]
        self.n_calibration_rows_ = len(rows)
        if self.calibrator_.uses_features and self.features == "leaves":
            self.preparation_ = prepare_leaves(self.estimator_, X)
        features = self._features(X)
        own = None if domains is None else domains[rows]
        trained_on, held_out = None, []
        if self.source is not None:
            source = np.atleast_1d(np.asarray(self.source))
            held_out = source[np.isin(source, np.asarray(own))].tolist()
            if features is not None:
                trained_on = features[np.isin(np.asarray(domains), source)]
        return CalibrationData.of(
            unseen.logits[known],
            codes[rows],
            features=None if features is None else features[rows],
            sample_domain=own,
            source_domain=held_out or None,
            reference_features=trained_on,
            sample_weight=None if weights is None else weights[rows],
        )

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
