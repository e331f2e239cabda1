"""The rows of a new domain, and what evidence says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.class_offsets import (
    OffsetProblem,
    move_to_shares,
    used_offsets,
)
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.estimators import CalibratedRows
from coolhead.calibrators.evidence import GROUP_SPREAD, Evidence, gather_evidence, logit
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.classifier.classifier import CalibratedClassifier
from coolhead.metrics.bins import Interval
from coolhead.models.outputs import check_calibrator
from coolhead.new_domain.accuracy import (
    GroupAccuracy,
    Labelled,
    accuracy_interval,
    believe_accuracy,
    beside_labels,
    combined,
    find_estimates,
    group_accuracy,
)
from coolhead.new_domain.labels import label_weights
from coolhead.new_domain.posterior import Belief, Estimate
from coolhead.new_domain.temperature import (
    LabelledLogits,
    best_offset,
    confidence_curve,
)
from coolhead.numerics.checks import (
    as_logits,
    check_features,
    check_logit_values,
    refuse_probabilities,
)
from coolhead.numerics.classes import (
    Names,
    check_names,
    class_positions,
    column_names,
    encode_beside,
    encode_labels,
    wanted_classes,
)
from coolhead.numerics.weights import masked_rows

# Folds of the labels; each is scored with class offsets learned from the others.
LABEL_FOLDS = 5


class Inputs(NamedTuple):
    """Checked rows of a new domain, and the calibrator they belong to.

    Attributes
    ----------
    calibrator : TemperatureCalibrator
    logits : ndarray of shape (n_samples, n_classes)
    features : ndarray of shape (n_samples, n_features) or None
    classes : ndarray of shape (n_classes,) or None
        Names of the columns, where known.
    columns : tuple or None
        Names of the columns as given, perhaps in another order.
    model : CalibratedClassifier or None
        The classifier around the calibrator.
    network : CalibratedModule or None
        The network around the calibrator.
    """

    calibrator: Any
    logits: np.ndarray
    features: np.ndarray | None
    classes: np.ndarray | None
    columns: Names | None = None
    model: CalibratedClassifier | None = None
    network: Any = None

    @property
    def offsets(self) -> np.ndarray | None:
        """Class offsets that the calibrator was fitted with."""
        return used_offsets(self.calibrator)

    def encode(self, labels: Any, rows: np.ndarray) -> np.ndarray:
        """Return the column of each label, -1 for a class the estimator never saw.

        Parameters
        ----------
        labels : array-like of shape (n_labels,)
        rows : ndarray of shape (n_labels,)
            Numbers of the labelled rows, for messages.
        """
        settings: dict[str, Any] = {"rows": rows}
        if self.model is None:
            names = None if self.classes is None else tuple(self.classes.tolist())
            own = getattr(self.calibrator, "class_names_", None)
            settings["counted"] = own is None
            n_classes, known = self.logits.shape[1], (self.columns or names, names)
            return encode_beside(labels, n_classes, len(rows), *known, **settings)[0]
        classes = self.model.classes_
        names = check_names(classes, "classes_")
        codes, _ = encode_labels(labels, len(classes), len(rows), names, **settings)
        return class_positions(classes, self.model.calibrated_classes)[codes]

    def every_class(self, columns: np.ndarray) -> np.ndarray:
        """Return columns in the order of the classifier's `classes_`, if there is one.

        A class that its estimator never saw has a column of zeros.
        """
        return columns if self.model is None else self.model._all_classes(columns)

    def around(self, calibrator: Any) -> Any:
        """Return the classifier or network, if there is one, with this calibrator."""
        outer = self.network or self.model
        return calibrator if outer is None else outer.with_calibrator(calibrator)


def read_inputs(calibrator: Any, logits: Any, features: Any) -> Inputs:
    """Check the rows of a batch, or the inputs of a classifier or network."""
    wrapped = hasattr(calibrator, "with_calibrator")
    if wrapped and features is not None:
        raise ValueError(
            f"features is given with a {type(calibrator).__name__}, which makes its "
            "own; wanted its inputs alone"
        )
    if isinstance(calibrator, CalibratedClassifier):
        model, (logits, features) = calibrator, calibrator._query(logits)
        inner = check_calibrator(model.calibrator_, temperature=True)
        found = _check(inner, logits, features)
        return Inputs(inner, *found, model.calibrated_classes, model=model)
    if wrapped:
        logits, features = calibrator.outputs_of(logits)
        found = read_inputs(calibrator.calibrator, logits, features)
        return found._replace(network=calibrator)
    check_calibrator(calibrator, temperature=True)
    columns = column_names(logits)
    names = wanted_classes(columns, getattr(calibrator, "class_names_", None))
    classes = None if names is None else np.array(names)
    array, features = _check(calibrator, logits, features)
    if np.ndim(logits) == 2:
        refuse_probabilities(array, "logits")
    return Inputs(calibrator, array, features, classes, columns)


def _check(
    calibrator: Any, logits: Any, features: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    array, checked = calibrator._check_query(logits, features)
    as_logits(array)  # refuses a batch without rows
    if checked is None and features is not None:
        # Of no use to this calibrator, but they tell what lies outside.
        checked = check_features(features, len(array))
    check_logit_values(array, "logits")
    return array, checked


@dataclass(frozen=True, eq=False)
class DomainState:
    """The rows of a new domain, their labels, and the evidence in use.

    Attributes
    ----------
    given : Inputs
    plain : CalibratedRows
        The rows with the calibrator's temperatures, without class offsets.
    evidence : Evidence or None
    use : tuple of str
        Kinds of evidence that may change the result.
    strata : ndarray of shape (n_samples,)
        Stratum of each row, for labelling.
    rows, labels : ndarray of shape (n_labels,)
        Labelled rows and the columns of their classes.
    """

    given: Inputs
    plain: CalibratedRows
    evidence: Evidence | None
    use: tuple[str, ...]
    strata: np.ndarray
    rows: np.ndarray
    labels: np.ndarray

    def changed(self, **changes: Any) -> Self:
        """Return the same domain with other labels or other kinds of evidence."""
        new = replace(self, **changes)
        # Labels do not change what depends on unlabelled rows alone; keep it.
        kept = () if "use" in changes else ("offsets_before_labels",)
        if "use" not in changes and self.class_offsets is None:
            kept = ("seen", "curve", "estimates")
        vars(new).update(
            {name: vars(self)[name] for name in kept if name in vars(self)}
        )
        return new

    @cached_property
    def offsets_before_labels(self) -> np.ndarray | None:
        """Class offsets by all evidence but labels; None where none are used."""
        if "classes" not in self.use:
            return None
        own, known = self.given.offsets, self.evidence
        if known is None or known.offset_spread is None:
            return own
        logits, temperature = self.plain[:2]
        start = np.zeros(logits.shape[1]) if own is None else own
        if "batch" not in self.use or known.class_shares is None:
            return start
        shares, step = known.class_shares, known.offset_step
        return move_to_shares(logits, temperature, start, shares, step)

    @cached_property
    def class_offsets(self) -> np.ndarray | None:
        """Class offsets of this domain, (n_classes,); None where none are used."""
        return self._offsets_by(np.arange(len(self.rows)))

    def _offsets_by(self, some: np.ndarray) -> np.ndarray | None:
        """Return class offsets learned from some of the labels, given by position."""
        start, known = self.offsets_before_labels, self.evidence
        possible = some[self.possible[some]]
        spread = None if known is None else known.offset_spread
        if start is None or spread is None or not len(possible):
            return start
        rows = self.rows[possible]
        problem = OffsetProblem(
            self.plain.logits[rows],
            self.plain.temperature[rows],
            self.labels[possible],
            np.zeros(len(rows), np.intp),
            label_weights(self.strata, self.rows)[possible],
        )
        return problem.solve(start, spread)[0]

    @property
    def possible(self) -> np.ndarray:
        """True for labels in use, (n_labels,); classes of probability zero are not."""
        if "labels" not in self.use:
            return np.zeros(len(self.rows), bool)
        masked = masked_rows(self.plain.logits[self.rows], self.labels)
        return (self.labels >= 0) & ~masked

    @cached_property
    def seen(self) -> CalibratedRows:
        """The rows with the class offsets of this domain in their logits."""
        return self.plain.with_offsets(self.class_offsets)

    @cached_property
    def labelled_seen(self) -> CalibratedRows:
        """The labelled rows, with class offsets learned from the other labels.

        Offsets fit the rows they were learned from better than they fit others.
        """
        plain, places = self.plain.take(self.rows), np.arange(len(self.rows))
        offsets = self.class_offsets
        if offsets is None or not self.possible.any():
            return plain.with_offsets(offsets)
        each = np.empty((len(places), len(offsets)))
        for fold in range(LABEL_FOLDS):
            own = places % LABEL_FOLDS == fold
            if own.any():
                each[own] = self._offsets_by(places[~own])
        return plain.with_offsets(each)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Estimates of the logit of the accuracy before labels."""
        offsets = None if self.class_offsets is None else self.given.offsets
        fitted = self.plain.with_offsets(offsets)
        # Left-out domains were scored with the class offsets of the fit. Estimates are
        # made with these, then moved by the change of mean confidence.
        moved = logit(self.seen.confidence.mean()) - logit(fitted.confidence.mean())
        return {
            one.name: one._replace(centre=one.centre + float(moved))
            for one in find_estimates(fitted, self.evidence, self.use)
        }

    @property
    def prior(self) -> Estimate:
        """The combined estimate before labels, with the spread of its errors."""
        known = self.evidence if "left_out" in self.use else None
        return combined(list(self.estimates.values()), known)

    @cached_property
    def belief(self) -> Belief:
        """Posterior of the logit of the accuracy."""
        return self._believe(self._labelled())

    @cached_property
    def accuracy(self) -> Interval:
        """Expected accuracy and its 90 % interval."""
        return accuracy_interval(self.belief, self.seen.confidence)

    @cached_property
    def moved(self) -> OffsetTemperature:
        """The calibrator, corrected for this domain."""
        estimates, line = list(self.estimates.values()), np.log(self.seen.temperature)
        labelled = self.labelled_logits(line)
        offset = 0.0
        # Left-out domains alone give the size of the offset, not its sign.
        if labelled is not None or len(estimates) > 1:
            offset = best_offset(self.curve, estimates, labelled)
        moved, offsets = self.given.calibrator, self.class_offsets
        if offsets is None:
            offsets = None if self.given.offsets is None else 0 * self.given.offsets
        else:
            # The offset divides all that is scaled, the class offsets, too.
            offsets = offsets * np.exp(-offset)
        return OffsetTemperature(moved, offset, class_offsets=offsets)

    @cached_property
    def calibrator(self) -> Any:
        """`moved`, within the classifier if one was given."""
        return self.given.around(self.moved)

    @cached_property
    def curve(self) -> np.ndarray:
        """Mean confidence along offsets of log T."""
        lines = np.log(self.seen.temperature)
        return confidence_curve(self.seen.logits, lines, self.seen.confidence)

    def accuracy_by(self, groups: np.ndarray) -> dict[Any, GroupAccuracy]:
        """Return the expected accuracy of each group of rows, by its name."""
        spread = GROUP_SPREAD if self.evidence is None else self.evidence.group_spread
        found = {}
        for name in np.unique(groups).tolist():
            mask = groups == name
            own, others = self._labelled(mask), self._labelled(~mask)
            whole = self.belief if own is None else self._believe(others)
            part = group_accuracy(self.seen.confidence, mask, whole, spread, own)
            found[name] = part
        return found

    def labelled_logits(self, log_temperature: np.ndarray) -> LabelledLogits | None:
        """Return the labelled rows in use, with the log T of all rows given."""
        possible = self.possible
        if not possible.any():
            return None
        logits, labels = self.labelled_seen.logits[possible], self.labels[possible]
        return LabelledLogits(logits, labels, log_temperature[self.rows[possible]])

    def _believe(self, labelled: Labelled | None) -> Belief:
        prior = self.prior if labelled is None else beside_labels(self.prior)
        return believe_accuracy(self.seen.confidence, [prior], labelled)

    def _labelled(self, wanted: np.ndarray | None = None) -> Labelled | None:
        """Return the labelled rows, or those that a mask selects."""
        if "labels" not in self.use:
            return None
        rows = self.rows if wanted is None else self.rows[wanted[self.rows]]
        if not len(rows):
            return None
        weights, found = label_weights(self.strata, self.rows), self.labelled_seen
        right, sure = found.predicted == self.labels, found.confidence
        if wanted is not None:
            kept = wanted[self.rows]
            weights, right, sure = weights[kept], right[kept], sure[kept]
        spread = None if self.evidence is None else self.evidence.offset_spread
        shared = "classes" in self.use and spread is not None
        return Labelled(sure, right, weights / weights.sum(), shared)


def learn_evidence(
    calibrator: Any,
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    features: ArrayLike | None = None,
    sample_domain: ArrayLike | None = None,
    source_domain: Any = None,
    reference_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Evidence:
    """Leave out each calibration domain once, and summarise it by fits without it.

    Calibrators that leave domains out in their own fit, such as `AutoCalibrator`, have
    done so: this is for the others, and for calibrators of version 0.2.

    Parameters
    ----------
    calibrator : TemperatureCalibrator or CalibratedClassifier
        Fitted.
    logits, labels, features, sample_domain, source_domain, reference_features, \
sample_weight : array-like
        As given to `fit`. For a `CalibratedClassifier`, X and y in place of logits and
        labels; its folds are fitted again.

    Returns
    -------
    evidence : Evidence

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, data.logits, data.labels, sample_domain=data.domains
    ... )
    >>> known.confidence.round(1), known.accuracy.round(1)    # of left-out domains
    (array([0.6, 0.8, 0.8]), array([0.8, 0.7, 0.8]))
    """
    beside = {
        "features": features,
        "source_domain": source_domain,
        "reference_features": reference_features,
    }
    rows = {"sample_domain": sample_domain, "sample_weight": sample_weight}
    if not isinstance(calibrator, CalibratedClassifier):
        check_calibrator(calibrator, temperature=True)
        names = getattr(calibrator, "class_names_", None)
        data = CalibrationData.of(logits, labels, **beside, **rows, classes=names)
        return gather_evidence(calibrator, data)
    for name, value in beside.items():
        if value is not None:
            raise ValueError(
                f"{name} is given with a CalibratedClassifier, which makes its own; "
                "wanted X, y, sample_domain and sample_weight, as in its fit"
            )
    check_is_fitted(calibrator)
    inner = check_calibrator(calibrator.calibrator_, temperature=True)
    return gather_evidence(inner, calibrator.calibration_data(logits, labels, **rows))
