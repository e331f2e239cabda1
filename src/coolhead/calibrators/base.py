"""What every calibrator that divides the logits by T(x) has in common."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.details import (
    PredictionDetails,
    describe_rows,
    find_clusters,
)
from coolhead.numerics import softmax
from coolhead.numerics.checks import (
    as_logits,
    check_domains,
    check_features,
    check_labels,
    check_logit_values,
    check_weights,
)
from coolhead.numerics.moments import Rows, summarise_rows


class FitData(NamedTuple):
    """Checked arguments of `fit`."""

    rows: Rows
    labels: np.ndarray
    features: Any
    domains: np.ndarray | None
    weights: np.ndarray | None


def fresh(estimator: Any) -> Any:
    """An unfitted copy. (`clone` is typed for containers of estimators, too.)"""
    return clone(estimator)


class TemperatureCalibrator(BaseEstimator):
    """Divides the logits by a temperature; the predicted class never changes.

    A subclass writes `fit`, which starts with `_begin_fit`, and `_temperature`, which
    gets checked arrays. It sets `uses_features` if T depends on the features.
    """

    uses_features: bool = False
    n_classes_: int
    n_features_: int | None
    temperature_: float
    status_: Any

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn T(x) from labelled rows of the calibration domains."""
        raise NotImplementedError(f"{type(self).__name__} does not define fit")

    def temperature(self, logits: Any, features: Any = None) -> np.ndarray:
        """Temperature of each row, (n,) float64, all positive."""
        logits, features = self._check_query(logits, features)
        # The softmax would notice NaN in logits; here it does not come to that.
        check_logit_values(logits, "logits")
        return self._temperatures(logits, features)

    def predict_proba(self, logits: Any, features: Any = None) -> np.ndarray:
        """Calibrated probabilities softmax(z / T(x)), (n, k)."""
        logits, features = self._check_query(logits, features)
        return softmax.softmax(logits, self._temperatures(logits, features))

    def confidence(
        self, logits: Any, features: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated confidence and predicted class, (n,) each.

        The (n, k) probabilities are never built.
        """
        logits, features = self._check_query(logits, features)
        return softmax.confidence(logits, self._temperatures(logits, features))

    def details(self, logits: Any, features: Any = None) -> PredictionDetails:
        """Probabilities, temperature, nearest cluster and coverage of each row.

        Where T does not depend on features, cluster and coverage are None.
        """
        logits, features = self._check_query(logits, features)
        temperature = self._temperatures(logits, features)
        probabilities = softmax.softmax(logits, temperature)
        return describe_rows(self, probabilities, temperature, features)

    def coverage(self, features: Any) -> Any:
        """How far rows of features (n, d) lie outside the calibration data.

        See `coolhead.shift.coverage`, which this is with the clusters of the fit.
        """
        # Most calibrators never need what the diagnostics of shift import.
        from coolhead.shift.coverage import coverage

        check_is_fitted(self)
        clusters = find_clusters(self)
        if clusters is None:
            raise ValueError(
                f"coverage needs clusters, which {type(self).__name__} has none of; "
                "wanted a cluster calibrator, or shift.coverage(batch, features)"
            )
        return coverage(features, clusters)

    def _temperatures(self, logits: np.ndarray, features: Any) -> np.ndarray:
        """T of each row; of no rows, none, whatever the method would need of them."""
        return self._temperature(logits, features) if len(logits) else np.empty(0)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not define T(x)")

    def _begin_fit(
        self,
        logits: Any,
        labels: Any,
        features: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> FitData:
        """Check every argument of `fit` and remember the shapes."""
        array = as_logits(logits)
        n_rows, n_classes = array.shape
        if labels is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: labels are "
                f"missing; wanted one class index per row, ({n_rows},)"
            )
        labels = check_labels(labels, n_classes, n_rows)
        weights = check_weights(sample_weight, n_rows)
        domains = (
            None if sample_domain is None else check_domains(sample_domain, n_rows)
        )
        checked = check_features(features, n_rows) if self.uses_features else None
        rows = summarise_rows(array, labels, scores=np.ndim(logits) == 1)
        self.n_classes_ = self.n_features_in_ = n_classes
        self.n_features_ = None if checked is None else checked.shape[1]
        return FitData(rows, labels, checked, domains, weights)

    def _check_query(
        self, logits: Any, features: Any
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Check the arguments of a prediction against those of `fit`."""
        check_is_fitted(self)
        self._check_columns(np.shape(logits))
        # Whether these are probabilities is asked in `fit`: one row cannot tell.
        array = as_logits(logits, allow_empty=True)
        if not self.uses_features:
            return array, None
        return array, check_features(features, len(array), self.n_features_)

    def _check_columns(self, shape: tuple[int, ...]) -> None:
        if len(shape) == 1 and self.n_classes_ != 2:
            raise ValueError(
                f"logits has shape {shape}; wanted (n, {self.n_classes_}) as in fit. "
                "Reshape your data with array.reshape(1, -1) if it is a single sample"
            )
        if len(shape) == 2 and shape[1] != self.n_classes_:
            raise ValueError(
                f"logits: X has {shape[1]} features, but {type(self).__name__} is "
                f"expecting {self.n_classes_} features as input: one column per class, "
                "as in fit"
            )
