"""What `NewDomain` accepts."""

import copy
import warnings
from collections.abc import Sequence
from functools import cached_property
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

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
from coolhead.new_domain.posterior import Estimate, expit
from coolhead.new_domain.sets import PredictionSets, find_limit, members
from coolhead.new_domain.temperature import Threshold, find_threshold
from coolhead.numerics.checks import check_domains
from coolhead.shift.clusters import Coverage, coverage

KINDS = ("left_out", "batch", "labels", "classes")


def check_use(use: Sequence[str]) -> tuple[str, ...]:
    kinds = (use,) if isinstance(use, str) else tuple(use)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(
            f"evidence {unknown[0]!r} is not known; wanted some of {', '.join(KINDS)}"
        )
    return kinds


MANY_OUTSIDE = 0.5


def percent(found: Interval) -> str:
    estimate, low, high = (100 * v for v in (found.estimate, found.low, found.high))
    return f"{estimate:.0f} % ({low:.0f} to {high:.0f})"


def as_sentence(there: Any) -> str:
    """What is to be said of a new domain, the worst first."""
    expected = f"expected accuracy {percent(there.accuracy)}"
    offsets = there.class_offsets
    if offsets is not None and offsets.any():
        expected += f", {percent(there.uncorrected_accuracy)} without class offsets"
    outside = there.outside
    if outside is None:
        where = "whether they lie outside what was calibrated cannot be told"
    else:
        share = f"{100 * outside.share_outside:.0f} %"
        where = f"{share} of the rows lie outside what was calibrated"
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
    """What was missing or unusual, in sentences.

    known : the evidence or None; place : of each row in its stratum's queue; rows :
        those with labels.
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
            f"{strange} labelled rows were not asked for by rows_to_label: they "
            "are taken as drawn at random among rows of like confidence"
        )
    return found


def steps(there: Any) -> list[tuple[str, Interval]]:
    """Expected accuracy as each kind of evidence is added."""
    found = [("left-out domains", there.without("batch", "labels").accuracy)]
    if len(there.estimates) > 1:
        found.append(("+ unlabelled rows", there.without("labels").accuracy))
    if _n_used(there):
        found.append((f"+ {_n_used(there)} labels", there.accuracy))
    return found


def _n_used(there: Any) -> int:
    return there.n_labels if "labels" in there._state.use else 0


def as_html(there: Any) -> str:
    """The sentence and a table of the steps."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{percent(found)}</td></tr>"
        for name, found in steps(there)
    )
    return (
        f"<div><p>{escape(as_sentence(there))}</p><table><tr><th>evidence</th>"
        f"<th>expected accuracy (90 %)</th></tr>{rows}</table></div>"
    )


def draw(there: Any, ax: Any) -> Any:
    """Intervals, one line for each step."""
    import matplotlib.pyplot as plt

    if ax is None:
        ax = plt.subplots(figsize=(5, 1.8), layout="constrained")[1]
    found = steps(there)
    for height, (_, one) in enumerate(reversed(found)):
        ax.plot([100 * one.low, 100 * one.high], [height, height], color="0.5")
        ax.plot(100 * one.estimate, height, "o", color="black")
    ax.set_yticks(range(len(found)), [name for name, _ in reversed(found)])
    ax.set_xlabel("expected accuracy, % (90 % interval)")
    ax.set_ylim(-0.5, len(found) - 0.5)
    return ax


class NewDomain:
    """A fitted calibrator and unlabelled rows of a domain it has never seen.

    It answers how often the classifier is right there, how sure that is, which rows
    to label to know better, and when not to answer. Nothing is ever changed:
    `with_labels` gives a new object.

    Parameters
    ----------
    calibrator : fitted, one that divides the logits by a temperature; or a
        `CalibratedClassifier` around one, which then takes X in place of logits and
        features, and labels as it knows them.
    logits, features : (n, k) and (n, d) of the new domain's rows; target data without
        labels, which moves the answer unless `use` leaves out "batch".
    evidence : what `learn_evidence` found on left-out domains; None takes what the
        calibrator carries as `evidence_`.
    use : kinds of evidence that may move the answer, out of "left_out", "batch",
        "labels"; and "classes", without which predicted classes are kept.
    random_state : of the order in which rows are asked for.
    row_numbers, drawn_from : where these rows are a sample of more: their numbers
        there, ascending, by which `rows_to_label` and `with_labels` then name them,
        and of how many.

    Attributes
    ----------
    accuracy : Interval, expected accuracy of `calibrator` with its 90 % limits.
    uncorrected_accuracy : Interval, that of predictions without class offsets.
    class_offsets : (k,) added to the scaled logits in this domain; None without any.
    calibrator : an ordinary calibrator for this domain.
    estimates : dict of `Estimate`, what moved the answer and how surely.
    outside : Coverage of the features, or None where it cannot be told.
    notes : list of str, what was missing.

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
    >>> rows = there.rows_to_label(20)    # then ask somebody
    >>> told = there.with_labels(rows, unseen.labels[rows]).accuracy
    >>> bool(told.low < (unseen.logits.argmax(1) == unseen.labels).mean() < told.high)
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
            evidence or getattr(calibrator, "evidence_", None),
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
        """Which rows lie where no calibration data was; None if nothing tells."""
        given, evidence = self._state.given, self._state.evidence
        regions = None if evidence is None else evidence.regions
        if regions is None:
            regions = getattr(given.calibrator, "clusters_", None)
        if regions is None or given.features is None:
            return None
        return coverage(given.features, regions)

    @property
    def estimates(self) -> dict[str, Estimate]:
        """What is known before labels: where each puts the logit of the accuracy."""
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
        """The same of the classifier's own predictions, without class offsets."""
        return self.without("classes").accuracy

    @property
    def class_offsets(self) -> np.ndarray | None:
        """Class offsets of this domain (n_classes,); None where none are used."""
        return self._state.class_offsets

    @property
    def calibrator(self) -> Any:
        """What was given, moved to this domain: it predicts, saves and exports."""
        return self._state.calibrator

    def by_class(self) -> dict[Any, GroupAccuracy]:
        """Expected accuracy of the rows predicted as each class (its precision)."""
        classes, predicted = self._state.given.classes, self._state.seen.predicted
        names = predicted if classes is None else classes[predicted]
        return self._state.accuracy_by(names)

    def by_group(self, groups: ArrayLike) -> dict[Any, GroupAccuracy]:
        """Expected accuracy of each group of rows; groups : (n,) names.

        How far groups stray is learned from predicted classes of left-out domains; of
        groups that differ more than these, the intervals promise too much.
        """
        names = check_domains(groups, self.n_rows, "groups")
        return self._state.accuracy_by(names)

    def rows_to_label(
        self, n: int | None = None, *, width: float | None = None
    ) -> np.ndarray:
        """Row numbers whose labels would tell most; never one that has a label.

        Parameters
        ----------
        n : how many.
        width : instead: as many as should bring the 90 % interval of the accuracy
            down to this width (0.1 for ten points).

        The same call gives the same rows, and a smaller n the first of them.
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
        """The same domain, knowing the labels of these rows, too.

        rows, labels : (m,) row numbers of the batch, best those of `rows_to_label`,
            and the true class of each. Labels of several calls add up.
        """
        known, rows = self._state, check_rows(rows, self._numbers)
        labels = known.given.encode(labels, rows)
        numbers, labels = merge_labels(self.labelled_rows, known.labels, rows, labels)
        rows = np.searchsorted(self._numbers, numbers)
        return self._with_state(known.changed(rows=rows, labels=labels))

    def without(self, *kinds: str) -> Self:
        """The same domain with some kinds of evidence switched off."""
        check_use(kinds)
        kept = tuple(kind for kind in self._state.use if kind not in kinds)
        return self._with_state(self._state.changed(use=kept))

    def _with_state(self, known: DomainState) -> Self:
        new = copy.copy(self)
        new._state = known
        vars(new).pop("uncorrected_accuracy", None)
        return new

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
        """Sets of classes that hold the true one with a promised probability.

        promise : "pooled", "every_domain" or "new_domain"; see `PredictionSets`.
        score : "lac", the smallest sets on average, or "aps", which adapts to rows.

        Scores come from the calibrator as it was fitted: a promise that rests on
        left-out domains must treat this one as they were treated.
        """
        given = self._state.given
        rows = self._state.plain.with_offsets(given.offsets)
        limit = find_limit(self._state.evidence, score, coverage, promise)
        found = members(rows.logits, rows.temperature, score, limit)
        found = given.every_class(found)
        return PredictionSets(found, coverage, promise, score, limit)

    @property
    def notes(self) -> list[str]:
        """What was missing, in sentences."""
        known = self._state
        place = asking_order(known.strata, self._random_state)
        return find_notes(known.evidence, known.strata, place, known.rows)

    def __str__(self) -> str:
        return as_sentence(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Expected accuracy as each kind of evidence is added; returns the axes."""
        return draw(self, ax)
