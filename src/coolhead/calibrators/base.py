"""The base classes of calibrators, and the quality of a fit on its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.class_offsets import used_offsets
from coolhead.calibrators.data import CalibrationData, refuse_source
from coolhead.calibrators.evidence import summarise
from coolhead.calibrators.fitted import FittedMethods
from coolhead.calibrators.left_out import OutOfDomain
from coolhead.calibrators.parameters import check_parameters
from coolhead.display import SummarisedFit
from coolhead.numerics import softmax
from coolhead.numerics.blocks import one_blas_thread
from coolhead.numerics.checks import (
    as_logits,
    check_features,
    check_logit_values,
    missing_features_message,
)
from coolhead.numerics.classes import Names, order_columns
from coolhead.numerics.softmax import log_loss_rows
from coolhead.numerics.solver import Solution, Status
from coolhead.shift.clusters import (
    Clusters,
    Coverage,
    coverage,
    find_regions,
    locate,
)

# Rounding in float32 sums moves a mean loss by less than this.
ROUNDING = 1e-6


def remember_quality(
    calibrator: Any,
    data: CalibrationData,
    temperature: float | np.ndarray,
    status: str,
) -> None:
    """Store status and losses of a temperature fitted on these rows."""
    losses = log_loss_rows(data.logits, data.labels, temperature)
    remember_losses(calibrator, losses, data, status)


def remember_beyond(
    calibrator: Any, data: CalibrationData, temperature: np.ndarray, common: Solution
) -> None:
    """Store the quality of T(x), (n,), whose fit started at the common temperature."""
    remember_quality(calibrator, data, temperature, Status.CONVERGED)
    if calibrator.status_ == Status.CONVERGED != common.status[0]:
        calibrator.status_ = status_beyond(common, temperature, calibrator.nll_)


def remember_losses(
    calibrator: Any, losses: np.ndarray, data: Any, status: str
) -> None:
    """Store `status`, unless the mean of the losses (n,) rose above uncalibrated.

    A method that minimises something else than the negative log-likelihood may raise
    it; then the status becomes `Status.NLL_ABOVE_UNCALIBRATED`.
    """
    before = log_loss_rows(data.logits, data.labels, 1.0)
    nll, uncalibrated = (
        float(np.average(rows, weights=data.weights)) for rows in (losses, before)
    )
    above = is_above(nll, uncalibrated)
    calibrator.nll_, calibrator.nll_uncalibrated_ = nll, uncalibrated
    calibrator.status_ = str(Status.NLL_ABOVE_UNCALIBRATED if above else status)


def is_above(nll: float, reference: float) -> bool:
    """Whether a mean loss exceeds another by more than rounding."""
    return nll > reference + ROUNDING * (1 + abs(reference))


def status_beyond(common: Solution, temperature: np.ndarray, nll: float) -> str:
    """Status of T(x), (n,), with mean loss `nll`, from a start at one common T.

    Where one temperature for all rows has no minimum, T(x) may have one: but not where
    all rows are right, not without a smaller loss, and not if every row went on to the
    same side, as far as the search let it.
    """
    status, start = str(common.status[0]), float(common.temperature[0])
    hopeless = status in (Status.CONSTANT_LOGITS, Status.PERFECTLY_SEPARATED)
    better = is_above(float(common.nll[0]), nll)
    one_sided = temperature.min() >= start or temperature.max() <= start
    if hopeless or one_sided or not better:
        return status
    return str(Status.CONVERGED)


Answer = tuple[np.ndarray, np.ndarray | None]


class PredictionDetails(NamedTuple):
    """What a calibrator knows about each row.

    Attributes
    ----------
    probabilities : (n, k) calibrated.
    temperature : (n,); None for methods that change the scores otherwise.
    cluster : (n,) nearest cluster of the calibration features; None without features.
    covered : (n,) True within the radius that holds 99 % of that cluster's members;
        False says that nothing like this row was calibrated. None without features.
    distance : (n,) to the cluster's centre, over that radius. None without features.
    """

    probabilities: np.ndarray
    temperature: np.ndarray | None
    cluster: np.ndarray | None
    covered: np.ndarray | None
    distance: np.ndarray | None = None


class Calibrator(SummarisedFit, FittedMethods, BaseEstimator):
    """Learns from labelled rows, gives calibrated probabilities.

    A subclass says once what it takes, out of "features", "source", "reference" and
    "target" (see `CalibrationData`), and writes `_learn(data)` and `_predict`.

    Attributes
    ----------
    takes : what `_learn` sees beside logits, labels, domains and weights.
    needs : what it cannot be fitted without, of these or "domains".
    uses_features : whether predictions depend on the features.
    class_names_ : names of the classes in the order of the columns of `predict_proba`;
        None where they are known by number only.
    n_masked_ : rows left out of the fit because their class has probability zero.

    Examples
    --------
    >>> import numpy as np
    >>> import coolhead as ch
    >>> class Shares(ch.calibrators.Calibrator):    # of the classes, for every row
    ...     def _learn(self, data):
    ...         self.shares_ = np.bincount(data.labels) / len(data.labels)
    ...         self.status_ = "converged"
    ...     def _predict(self, logits, features):
    ...         return np.tile(self.shares_, (len(logits), 1)), None
    ...
    >>> Shares().fit([[2.0, 0.0]] * 4, [0, 0, 0, 1]).predict_proba([[9.0, 0.0]])
    array([[0.75, 0.25]])
    """

    takes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    uses_features: bool = False
    n_classes_: int
    n_features_: int | None
    # None of calibrators that were saved by version 0.2, too.
    class_names_: Names | None = None
    n_masked_: int = 0
    clusters_: Clusters
    status_: Any

    def fit(
        self,
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        features: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        source_domain: Any = None,
        reference_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: Any = None,
    ) -> Self:
        """Learn from labelled rows of the calibration domains.

        Arguments that the calibrator does not take are ignored, except for
        `source_domain`, whose rows would be taken for ordinary ones.

        Parameters
        ----------
        logits : array-like of shape (n_samples, n_classes) or (n_samples,)
            A vector holds the scores of a binary classifier.
        labels : array-like of shape (n_samples,)
            Column numbers, or names of the classes.
        features : array-like of shape (n_samples, n_features), default=None
            For example the classifier's penultimate activations.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row.
        source_domain : str or list, default=None
            Name or names in `sample_domain` of held-out rows of the domains the
            classifier was trained on.
        reference_features : array-like of shape (n_rows, n_features), default=None
            Features of rows the classifier was trained on.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0; rows of weight zero are as good as absent.
        classes : sequence, default=None
            Names of the classes in the order of the columns. By default the names of
            the columns of a frame or, of an array, the sorted labels.
        """
        check_parameters(self)
        takes = self.takes
        if source_domain is not None:
            refuse_source(self, source_domain)
        data = CalibrationData.of(
            logits,
            labels,
            features=features if "features" in takes else None,
            sample_domain=sample_domain,
            source_domain=source_domain,
            reference_features=reference_features if "reference" in takes else None,
            sample_weight=sample_weight,
            classes=classes,
        )
        return self.fit_data(data)

    def fit_data(self, data: CalibrationData) -> Self:
        """Learn from a checked record; what is not in `takes` stays hidden."""
        with one_blas_thread():
            left_out = self._fit(data)
            if self.uses_features and not hasattr(self, "clusters_"):
                self.clusters_ = find_regions(data.features)
            if left_out is not None:
                self.evidence_ = summarise(self, data.only(self.takes), left_out)
        return self.note_masked(data.n_masked) if data.n_masked else self

    def fit_part(self, data: CalibrationData) -> Self:
        """Learn as a part of another calibrator, without evidence or clusters."""
        self._fit(data)
        return self

    def _fit(self, data: CalibrationData) -> OutOfDomain | None:
        """Check, learn, and return the rows of left-out domains if there are any."""
        check_parameters(self)
        data = data.only(self.takes)
        if self.needs or self.uses_features:
            self._require(data)
        vars(self).pop("clusters_", None)  # of an earlier fit
        self.note_shapes(data.n_classes, data.features, data.classes)
        return self._learn(data)

    def note_shapes(
        self, n_classes: int, features: Any, classes: Names | None = None
    ) -> Self:
        """Remember the columns that predictions are checked against."""
        vars(self).pop("evidence_", None)  # of an earlier fit
        self.n_masked_ = 0
        self.n_classes_ = self.n_features_in_ = n_classes
        vars(self).pop("n_features_", None)
        used = features if self.uses_features else None
        self.n_features_ = None if used is None else used.shape[1]
        self.class_names_ = classes
        return self

    def note_masked(self, n_masked: int) -> Self:
        """Count the rows that the fit left out because their class is masked."""
        self.n_masked_ = n_masked
        if n_masked and isinstance(self.status_, str):
            self.status_ += (
                f"; {n_masked} rows left out, their class has probability zero"
            )
        return self

    def _require(self, data: CalibrationData) -> None:
        """Refuse a record without what this calibrator cannot do without."""
        name, n_rows = type(self).__name__, len(data)
        if ("features" in self.needs or self.uses_features) and data.features is None:
            raise ValueError(missing_features_message(n_rows))
        if "target" in self.needs and data.target is None:
            raise ValueError(
                f"target_features is missing: {name} needs unlabelled target data; "
                f"wanted an array (m, {data.features.shape[1]})"
            )
        if "domains" in self.needs and not data.domains_known:
            raise ValueError(
                f"sample_domain is missing: {name} learns from the difference between "
                f"domains; wanted one domain per row, ({n_rows},)"
            )

    def predict_proba(
        self, logits: ArrayLike, features: ArrayLike | None = None
    ) -> np.ndarray:
        """Return calibrated probabilities of shape (n_samples, n_classes).

        The columns of a frame are matched to the classes of the fit by name, in any
        order; those of the result are in the order of the fit.
        """
        query = self._check_query(logits, features)
        return self._predict(*query)[0]

    def confidence(
        self, logits: ArrayLike, features: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated confidence and predicted class, (n,) each."""
        query = self._check_query(logits, features)
        return self._confidence(*query)

    def details(
        self, logits: ArrayLike, features: ArrayLike | None = None
    ) -> PredictionDetails:
        """Probabilities, temperature, nearest cluster and coverage of each row.

        Where predictions do not depend on features, cluster and coverage are None.
        """
        logits, rows = self._check_query(logits, features)
        answer = self._predict(logits, rows)
        if rows is None:
            return PredictionDetails(*answer, None, None)
        nearest, distance = locate(self.clusters_, rows)
        return PredictionDetails(*answer, nearest, distance <= 1, distance)

    def coverage(self, features: ArrayLike) -> Coverage:
        """How far rows of features (n, d) lie outside the calibration data.

        See `coolhead.shift.clusters`, which this is with the clusters of the fit.
        """
        check_is_fitted(self)
        if not self.uses_features:
            raise ValueError(
                f"{type(self).__name__} was fitted without features, so it does not "
                "know what lies outside the calibration data; wanted a calibrator that "
                "uses features, or coolhead.shift.coverage(batch, calibration_features)"
            )
        return coverage(features, self.clusters_)

    def _learn(self, data: CalibrationData) -> OutOfDomain | None:
        """Learn; return the rows of left-out domains if it leaves domains out."""
        raise NotImplementedError(f"{type(self).__name__} does not define _learn")

    def _predict(self, logits: np.ndarray, features: Any) -> Answer:
        """Probabilities (n, k) of checked rows and, if there is one, their T (n,)."""
        raise NotImplementedError(f"{type(self).__name__} does not define its map")

    def _confidence(
        self, logits: np.ndarray, features: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Largest probability and its class, where the others may stay unbuilt."""
        probabilities = self._predict(logits, features)[0]
        return probabilities.max(axis=1), probabilities.argmax(axis=1)

    def _check_query(
        self, logits: Any, features: Any
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Check the arguments of a prediction against those of `fit`."""
        if not hasattr(self, "n_classes_"):
            check_is_fitted(self)
        self._check_columns(np.shape(logits))
        # Probabilities are refused in `fit` only: a single row is not enough evidence.
        array = as_logits(logits, allow_empty=True)
        if hasattr(logits, "columns"):
            array, _ = order_columns(array, logits, self.class_names_)
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


class TemperatureCalibrator(Calibrator):
    """Divides the logits by a temperature, and adds class offsets if it has some.

    Without class offsets the predicted class never changes. A subclass whose
    temperature is not the same for every row writes `_temperature`, which gets checked
    arrays.

    Attributes
    ----------
    class_offsets_ : ndarray of shape (n_classes,) or None
        Added to the scaled logits; None, or zeros, where predicted classes are kept.

    Examples
    --------
    >>> import coolhead as ch
    >>> class Lukewarm(ch.calibrators.TemperatureCalibrator):    # T = 2, always
    ...     def _learn(self, data):
    ...         self.temperature_, self.status_ = 2.0, "converged"
    ...
    >>> Lukewarm().fit([[2.0, 0.0]], [0]).predict_proba([[2.0, 0.0]]).round(2)
    array([[0.73, 0.27]])
    """

    temperature_: float
    evidence_: Any
    class_offsets_: np.ndarray | None = None

    def temperature(
        self, logits: ArrayLike, features: ArrayLike | None = None
    ) -> np.ndarray:
        """Temperature of each row, (n,) float64, all positive."""
        logits, features = self._check_query(logits, features)
        # The softmax would notice NaN in logits; here it does not come to that.
        check_logit_values(logits, "logits")
        return self._temperatures(logits, features)

    def _predict(self, logits: np.ndarray, features: Any) -> Answer:
        temperature = self._temperatures(logits, features)
        return softmax.softmax(logits, temperature, used_offsets(self)), temperature

    def _confidence(
        self, logits: np.ndarray, features: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        temperature = self._temperatures(logits, features)
        return softmax.confidence(logits, temperature, used_offsets(self))

    def _temperatures(self, logits: np.ndarray, features: Any) -> np.ndarray:
        """T of each row; of no rows, none, whatever the method would need of them."""
        return self._temperature(logits, features) if len(logits) else np.empty(0)

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        """The same temperature for every row."""
        return np.full(len(logits), self.temperature_)


class OfParts(Calibrator):
    """Takes what its parts take, and uses features if one of them does.

    A subclass writes `_parts`.
    """

    def _parts(self) -> Sequence[Calibrator]:
        raise NotImplementedError(f"{type(self).__name__} does not name its parts")

    def _checked_parts(self) -> Sequence[Calibrator]:
        # `fit` checks as well, but reads what the parts take before.
        check_parameters(self)
        return self._parts()

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if a part uses features."""
        return any(part.uses_features for part in self._checked_parts())

    @property
    def takes(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the parts take together."""
        kinds = [kind for part in self._checked_parts() for kind in part.takes]
        return tuple(dict.fromkeys(kinds))

    @property
    def needs(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What one of the parts cannot do without."""
        kinds = [kind for part in self._checked_parts() for kind in part.needs]
        return tuple(dict.fromkeys(kinds))
