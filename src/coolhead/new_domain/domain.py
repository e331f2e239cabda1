"""A fitted calibrator in a domain it has never seen."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from functools import cached_property
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from coolhead.calibrators.class_offsets import used_offsets
from coolhead.calibrators.estimators import calibrate_rows, scale_rows
from coolhead.calibrators.evidence import Evidence, logit
from coolhead.metrics.bins import Interval
from coolhead.new_domain.accuracy import GroupAccuracy
from coolhead.new_domain.knowledge import DomainState, read_inputs
from coolhead.new_domain.labels import (
    asking_order,
    check_free,
    check_reachable,
    check_row_numbers,
    check_rows,
    choose_rows,
    find_strata,
    labels_for_width,
    merge_labels,
)
from coolhead.new_domain.posterior import Estimate
from coolhead.new_domain.sets import PredictionSets, find_limit, members
from coolhead.new_domain.temperature import Threshold, find_threshold
from coolhead.new_domain.verdict import (
    MANY_OUTSIDE,
    Verdict,
    percent,
    reach_verdict,
)
from coolhead.numerics.checks import check_domains
from coolhead.shift.clusters import Coverage, coverage

KINDS = ("left_out", "batch", "labels", "classes")


def check_use(use: Sequence[str]) -> tuple[str, ...]:
    """Check the names of kinds of evidence."""
    kinds = (use,) if isinstance(use, str) else tuple(use)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(
            f"evidence {unknown[0]!r} is not known; wanted some of {', '.join(KINDS)}"
        )
    return kinds


def as_sentence(there: Any) -> str:
    """Summarise a new domain as text, the worst first."""
    expected = f"expected accuracy {percent(there.accuracy)}"
    offsets = there.class_offsets
    if offsets is not None and offsets.any():
        expected += f", {percent(there.uncorrected_accuracy)} without class offsets"
    outside = there.outside
    if outside is None:
        where = "whether they lie outside the calibration data is unknown"
    else:
        share = f"{100 * outside.share_outside:.0f} %"
        where = f"{share} of the rows lie outside the calibration data"
    if outside is not None and outside.share_outside > MANY_OUTSIDE:
        parts = [where, expected]
    else:
        parts = [expected, where]
    labels = f"{_n_used(there)} labels" if _n_used(there) else "no labels"
    drawn = there.drawn_from
    rows = f"{there.n_rows} rows" + (f" out of {drawn}" if drawn is not None else "")
    text = ", ".join([*parts, f"from {rows} and {labels}"])
    return "; ".join([text, *there.notes])


def find_notes(
    known: Any, strata: np.ndarray, place: np.ndarray, rows: np.ndarray
) -> list[str]:
    """List as text what was missing or unusual.

    Parameters
    ----------
    known : Evidence or None
    strata : ndarray of shape (n_samples,)
    place : ndarray of shape (n_samples,)
        Position of each row in the queue of its stratum.
    rows : ndarray of shape (n_labels,)
        Labelled rows.
    """
    found = []
    if known is None:
        found.append("fitted without evidence: the spread of domains is a default")
    elif len(known.domains) == 0:
        found.append(
            "fewer than two calibration domains: no spread could be measured, a "
            "default widens the interval"
        )
    taken = np.bincount(strata[rows], minlength=strata.max() + 1)
    strange = int((place[rows] >= taken[strata[rows]]).sum())
    if strange:
        found.append(
            f"{strange} labelled rows were not suggested by rows_to_label: they "
            "are taken as drawn at random among rows of similar confidence"
        )
    return found


def steps(there: Any) -> list[tuple[str, Interval]]:
    """Return the expected accuracy as each kind of evidence is added."""
    found = [("left-out domains", there.without("batch", "labels").accuracy)]
    if len(there.estimates) > 1:
        found.append(("+ unlabelled rows", there.without("labels").accuracy))
    if _n_used(there):
        found.append((f"+ {_n_used(there)} labels", there.accuracy))
    return found


def _n_used(there: Any) -> int:
    return there.n_labels if "labels" in there._state.use else 0


def as_html(there: Any) -> str:
    """Return the summary and a table of the steps as HTML."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{percent(found)}</td></tr>"
        for name, found in steps(there)
    )
    return (
        f"<div><p>{escape(as_sentence(there))}</p><table><tr><th>evidence</th>"
        f"<th>expected accuracy (90 %)</th></tr>{rows}</table></div>"
    )


class NewDomain:
    """A fitted calibrator and unlabelled rows of a domain it has never seen.

    Estimates how often the classifier is right there, with an interval; chooses rows to
    label; corrects temperatures and class offsets for the domain. No method changes the
    object: `with_labels` and `without` return new ones.

    Parameters
    ----------
    calibrator : TemperatureCalibrator, CalibratedClassifier or CalibratedModule
        Fitted. A `CalibratedClassifier` takes X in place of logits and features, and
        labels by its own class names; a `CalibratedModule` takes a data loader.
    logits : array-like of shape (n_samples, n_classes)
        Rows of the new domain. Unlabelled target data: they change the result unless
        `use` leaves out "batch".
    features : array-like of shape (n_samples, n_features), default=None
        Features of the rows, if the calibrator uses them.
    evidence : Evidence, default=None
        Result of `learn_evidence`; None takes `calibrator.evidence_`.
    use : sequence of {"left_out", "batch", "labels", "classes"}, default=all
        Kinds of evidence that may change the result. Without "classes" the predicted
        class of every row is kept.
    random_state : int, default=0
        Seed of the order in which rows are suggested for labelling.
    row_numbers : array-like of int of shape (n_samples,), default=None
        Numbers of the rows in a larger file that these are a sample of, ascending;
        `rows_to_label` and `with_labels` use them.
    drawn_from : int, default=None
        Number of rows that the sample was drawn from.

    Attributes
    ----------
    accuracy : Interval
        Expected accuracy of the predictions of `calibrator`, with 90 % limits.
    uncorrected_accuracy : Interval
        Expected accuracy of the classifier's own predictions.
    class_offsets : ndarray of shape (n_classes,) or None
        Added to the scaled logits in this domain.
    calibrator, model : TemperatureCalibrator, CalibratedClassifier or CalibratedModule
        What was given, corrected for this domain. It predicts, saves and exports.
    estimates : dict of str to Estimate
        Estimates of the accuracy before labels, and their scales.
    outside : Coverage or None
        Which rows lie outside the calibration data; None where that is unknown.
    notes : list of str
        What was missing or unusual.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 1.5])
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, seen.logits, seen.labels, sample_domain=seen.domains
    ... )
    >>> there = ch.NewDomain(cal, unseen.logits, evidence=known)
    >>> rows = there.rows_to_label(20)
    >>> found = there.with_labels(rows, unseen.labels[rows]).accuracy
    >>> truth = (unseen.logits.argmax(1) == unseen.labels).mean()
    >>> bool(found.low < truth < found.high)
    True
    """

    def __init__(
        self,
        calibrator: Any,
        logits: Any,
        features: Any = None,
        *,
        evidence: Evidence | None = None,
        use: Sequence[str] = KINDS,
        random_state: int = 0,
        row_numbers: ArrayLike | None = None,
        drawn_from: int | None = None,
    ):
        given, use = read_inputs(calibrator, logits, features), check_use(use)
        plain = scale_rows(given.calibrator, given.logits, given.features)
        seen = plain.with_offsets(used_offsets(given.calibrator))
        self._state = DomainState(
            given,
            plain,
            evidence or getattr(given.model or given.calibrator, "evidence_", None),
            use,
            find_strata(seen.confidence),
            *(np.empty(0, np.intp), np.empty(0, np.intp)),
        )
        self._random_state = random_state
        self._numbers = check_row_numbers(row_numbers, len(given.logits))
        self.drawn_from = drawn_from

    @property
    def n_rows(self) -> int:
        """Number of rows of the batch."""
        return len(self._state.given.logits)

    @property
    def n_labels(self) -> int:
        """Number of rows whose label is known."""
        return len(self._state.rows)

    @property
    def labelled_rows(self) -> np.ndarray:
        """Row numbers with known labels, ascending."""
        return self._numbers[self._state.rows]

    @cached_property
    def outside(self) -> Coverage | None:
        """Which rows lie outside the calibration data; None where that is unknown."""
        given, evidence = self._state.given, self._state.evidence
        regions = None if evidence is None else evidence.regions
        if regions is None:
            regions = getattr(given.calibrator, "clusters_", None)
        if regions is None or given.features is None:
            return None
        return coverage(given.features, regions)

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Estimates of the logit of the accuracy before labels."""
        return self._state.estimates

    @property
    def witnesses(self) -> dict[str, Estimate]:
        """Deprecated name of `estimates`."""
        warnings.warn(
            "NewDomain.witnesses is now NewDomain.estimates",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.estimates

    @property
    def accuracy(self) -> Interval:
        """Expected accuracy and its 90 % interval."""
        return self._state.accuracy

    @cached_property
    def uncorrected_accuracy(self) -> Interval:
        """Expected accuracy of the classifier's predictions without class offsets."""
        return self.without("classes").accuracy

    @property
    def class_offsets(self) -> np.ndarray | None:
        """Class offsets of this domain (n_classes,); None where none are used."""
        return self._state.class_offsets

    @property
    def calibrator(self) -> Any:
        """The calibrator corrected for this domain."""
        return self._state.calibrator

    @property
    def model(self) -> Any:
        """What was given, corrected for this domain: the same as `calibrator`."""
        return self.calibrator

    def by_class(self) -> dict[Any, GroupAccuracy]:
        """Expected accuracy of the rows predicted as each class (its precision)."""
        classes, predicted = self._state.given.classes, self._state.seen.predicted
        names = predicted if classes is None else classes[predicted]
        return self._state.accuracy_by(names)

    def by_group(self, groups: ArrayLike) -> dict[Any, GroupAccuracy]:
        """Return the expected accuracy of each group of rows.

        The spread of groups is learned from the predicted classes of left-out domains.
        Intervals are too narrow for groups that differ more than these.

        Parameters
        ----------
        groups : array-like of shape (n_samples,)
            Name of the group of each row.
        """
        names = check_domains(groups, self.n_rows, "groups")
        return self._state.accuracy_by(names)

    def rows_to_label(
        self, n: int | None = None, *, width: float | None = None
    ) -> np.ndarray:
        """Choose the unlabelled rows whose labels narrow the estimates most.

        The same call returns the same rows, and a smaller `n` the first of them.

        Parameters
        ----------
        n : int, default=None
            Number of rows.
        width : float, default=None
            In place of `n`: as many rows as should narrow the 90 % interval of the
            accuracy to this width (0.1 for ten points).

        Returns
        -------
        rows : ndarray of int of shape (n,)
        """
        if (n is None) == (width is None):
            raise ValueError(f"n is {n} and width is {width}; wanted one of the two")
        known, sure = self._state, self._state.seen.confidence
        labelled = np.zeros(self.n_rows, bool)
        labelled[known.rows] = True
        if width is not None:
            n = labels_for_width(width, known.belief, self.accuracy, sure)
            check_reachable(width, n, labelled)
        n = check_free(n, labelled)
        place = asking_order(known.strata, self._random_state)
        moved = known.belief.mean - float(logit(sure.mean()))
        sure = expit(logit(sure) + moved)
        return self._numbers[choose_rows(sure, known.strata, place, labelled, n)]

    def with_labels(self, rows: Any, labels: ArrayLike) -> Self:
        """Return the same domain with the labels of some rows.

        Labels of several calls add up.

        Parameters
        ----------
        rows : array-like of int of shape (n_labels,)
            Row numbers, best those of `rows_to_label`.
        labels : array-like of shape (n_labels,)
            True class of each.
        """
        known, rows = self._state, check_rows(rows, self._numbers)
        labels = known.given.encode(labels, rows)
        numbers, labels = merge_labels(self.labelled_rows, known.labels, rows, labels)
        rows = np.searchsorted(self._numbers, numbers)
        return self._with_state(known.changed(rows=rows, labels=labels))

    def without(self, *kinds: str) -> Self:
        """Return the same domain without some kinds of evidence."""
        check_use(kinds)
        kept = tuple(kind for kind in self._state.use if kind not in kinds)
        return self._with_state(self._state.changed(use=kept))

    def _with_state(self, known: DomainState) -> Self:
        new = copy.copy(self)
        new._state = known
        vars(new).pop("uncorrected_accuracy", None)
        return new

    def verdict(self, need: float) -> Verdict:
        """Return "use it", "label N more rows first" or "do not use it here".

        Parameters
        ----------
        need : float
            Lowest accuracy at which the classifier is of use, between 0 and 1.
        """
        return reach_verdict(self, need, _n_used(self))

    def threshold(self, accuracy: float = 0.95, *, level: float = 0.9) -> Threshold:
        """Find the lowest confidence of `calibrator` to answer at.

        Parameters
        ----------
        accuracy : float, default=0.95
            Wanted expected accuracy of this domain's answered rows.
        level : float, default=0.9
            Certainty of the promise, in [0.5, 1): the share of new domains in which
            it is kept, counting those that get no threshold.

        Returns
        -------
        threshold : Threshold
        """
        if not 0.5 <= level < 1:
            raise ValueError(f"level is {level}; wanted a share in [0.5, 1)")
        known = self._state
        rows = calibrate_rows(known.moved, known.given.logits, known.given.features)
        labelled = known.labelled_logits(np.log(rows.temperature))
        return find_threshold(rows, known.prior, labelled, accuracy, level)

    def sets(
        self, coverage: float = 0.9, *, promise: str = "new_domain", score: str = "lac"
    ) -> PredictionSets:
        """Return sets of classes that hold the true one with a promised probability.

        Scores come from the calibrator as it was fitted: a promise that rests on
        left-out domains must treat this domain as they were treated.

        Parameters
        ----------
        coverage : float, default=0.9
            Share of rows whose set contains the true class.
        promise : {"pooled", "every_domain", "new_domain"}, default="new_domain"
            See `PredictionSets`.
        score : {"lac", "aps"}, default="lac"
            "lac" gives the smallest sets on average, "aps" adapts to rows.
        """
        given = self._state.given
        rows = self._state.plain.with_offsets(given.offsets)
        limit = find_limit(self._state.evidence, score, coverage, promise)
        found = members(rows.logits, rows.temperature, score, limit)
        found = given.every_class(found)
        return PredictionSets(found, coverage, promise, score, limit)

    @property
    def notes(self) -> list[str]:
        """What was missing or unusual, as text."""
        known = self._state
        place = asking_order(known.strata, self._random_state)
        return find_notes(known.evidence, known.strata, place, known.rows)

    def __str__(self) -> str:
        return as_sentence(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)
