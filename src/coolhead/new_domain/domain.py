"""A domain nobody has labels of yet: what can be said, and what a few labels add."""

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.intervals import Interval
from coolhead.new_domain.accuracy import GroupAccuracy
from coolhead.new_domain.batch import see
from coolhead.new_domain.checks import KINDS, check_use
from coolhead.new_domain.evidence import Evidence
from coolhead.new_domain.given import look_at
from coolhead.new_domain.knowledge import Knowledge
from coolhead.new_domain.labelling import asking_order, choose_rows, find_strata
from coolhead.new_domain.labels import (
    check_free,
    check_new_labels,
    check_reachable,
    check_row_numbers,
    check_rows,
    labels_for_width,
    merge_labels,
)
from coolhead.new_domain.posterior import Witness, expit, logit
from coolhead.new_domain.scores import members
from coolhead.new_domain.sets import PredictionSets, find_limit
from coolhead.new_domain.threshold import Threshold, find_threshold
from coolhead.new_domain.words import as_html, as_sentence, draw, find_notes
from coolhead.numerics.checks import check_domains
from coolhead.shift.coverage import Coverage, coverage


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
        "labels".
    random_state : of the order in which rows are asked for.
    row_numbers, drawn_from : where these rows are a sample of more: their numbers
        there, ascending, by which `rows_to_label` and `with_labels` then name them,
        and of how many.

    Attributes
    ----------
    accuracy : Interval, expected accuracy with its 90 % limits.
    calibrator : an ordinary calibrator for this domain.
    witnesses : dict of `Witness`, what moved the answer and how surely.
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
        given, use = look_at(calibrator, logits, features), check_use(use)
        seen = see(given.calibrator, given.logits, given.features)
        self._known = Knowledge(
            given,
            seen,
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
        return len(self._known.given.logits)

    @property
    def n_labels(self) -> int:
        """Number of rows whose label is known."""
        return len(self._known.rows)

    @property
    def labelled_rows(self) -> np.ndarray:
        """Row numbers with known labels, ascending."""
        return self._numbers[self._known.rows]

    @cached_property
    def outside(self) -> Coverage | None:
        """Which rows lie where no calibration data was; None if nothing tells."""
        given, evidence = self._known.given, self._known.evidence
        regions = None if evidence is None else evidence.regions
        if regions is None:
            regions = getattr(given.calibrator, "clusters_", None)
        if regions is None or given.features is None:
            return None
        return coverage(given.features, regions)

    @property
    def witnesses(self) -> dict[str, Witness]:
        """What is known before labels: where each puts the logit of the accuracy."""
        return self._known.witnesses

    @property
    def accuracy(self) -> Interval:
        """Expected accuracy and its 90 % interval."""
        return self._known.accuracy

    @property
    def calibrator(self) -> Any:
        """What was given, moved to this domain: it predicts, saves and exports."""
        return self._known.calibrator

    def by_class(self) -> dict[Any, GroupAccuracy]:
        """Expected accuracy of the rows predicted as each class (its precision)."""
        classes, predicted = self._known.given.classes, self._known.seen.predicted
        names = predicted if classes is None else classes[predicted]
        return self._known.accuracy_by(names)

    def by_group(self, groups: ArrayLike) -> dict[Any, GroupAccuracy]:
        """Expected accuracy of each group of rows; groups : (n,) names.

        How far groups stray is learned from predicted classes of left-out domains; of
        groups that differ more than these, the intervals promise too much.
        """
        names = check_domains(groups, self.n_rows, "groups")
        return self._known.accuracy_by(names)

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
        known, sure = self._known, self._known.seen.confidence
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
        known, rows = self._known, check_rows(rows, self._numbers)
        labels = known.given.number(labels)
        labels = check_new_labels(labels, known.given.logits.shape[1], rows)
        numbers, labels = merge_labels(self.labelled_rows, known.labels, rows, labels)
        rows = np.searchsorted(self._numbers, numbers)
        return self._knowing(known.but(rows=rows, labels=labels))

    def without(self, *kinds: str) -> Self:
        """The same domain with some kinds of evidence switched off."""
        check_use(kinds)
        kept = tuple(kind for kind in self._known.use if kind not in kinds)
        return self._knowing(self._known.but(use=kept))

    def _knowing(self, known: Knowledge) -> Self:
        new = copy.copy(self)
        new._known = known
        return new

    def threshold(self, accuracy: float = 0.95, *, level: float = 0.9) -> Threshold:
        """The lowest confidence of `calibrator` to answer at.

        accuracy : wanted share of answered rows that are right, in this domain.
        level : how certain that shall be, given how far off domains usually are.
        """
        if not 0.5 <= level < 1:
            raise ValueError(f"level is {level}; wanted a share in [0.5, 1)")
        given = self._known.given
        sure = see(self._known.moved, given.logits, given.features).confidence
        lowest = float(expit(self._known.belief.quantile(1 - level)))
        return find_threshold(sure, self.accuracy.estimate, lowest, accuracy, level)

    def sets(
        self, coverage: float = 0.9, *, promise: str = "new_domain", score: str = "lac"
    ) -> PredictionSets:
        """Sets of classes that hold the true one with a promised probability.

        promise : "pooled", "every_domain" or "new_domain"; see `PredictionSets`.
        score : "lac", the smallest sets on average, or "aps", which adapts to rows.

        Scores come from the calibrator as it was fitted: a promise that rests on
        left-out domains must treat this one as they were treated.
        """
        seen = self._known.seen
        limit = find_limit(self._known.evidence, score, coverage, promise)
        found = members(seen.logits, seen.temperature, score, limit)
        return PredictionSets(found, coverage, promise, score, limit)

    @property
    def notes(self) -> list[str]:
        """What was missing, in sentences."""
        known = self._known
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
