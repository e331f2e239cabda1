"""A domain nobody has labels of yet: what can be said, and what a few labels add."""

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coolhead.calibrators.offset import OffsetTemperature
from coolhead.metrics.intervals import Interval
from coolhead.new_domain.accuracy import (
    GroupAccuracy,
    Labelled,
    accuracy_interval,
    believe_accuracy,
    find_witnesses,
    group_accuracy,
    together,
)
from coolhead.new_domain.batch import see
from coolhead.new_domain.checks import KINDS, check_use
from coolhead.new_domain.evidence import GROUP_SPREAD, Evidence
from coolhead.new_domain.given import look_at
from coolhead.new_domain.labelling import (
    asking_order,
    choose_rows,
    find_strata,
    label_weights,
)
from coolhead.new_domain.labels import (
    check_free,
    check_new_labels,
    check_reachable,
    check_row_numbers,
    check_rows,
    labels_for_width,
    merge_labels,
)
from coolhead.new_domain.posterior import Belief, Witness, expit, logit
from coolhead.new_domain.scores import members
from coolhead.new_domain.sets import PredictionSets, find_limit
from coolhead.new_domain.temperature import (
    LabelledLogits,
    Move,
    best_move,
    confidence_curve,
)
from coolhead.new_domain.threshold import Threshold, find_threshold
from coolhead.new_domain.words import as_html, as_sentence, draw, find_notes
from coolhead.numerics.checks import (
    check_domains,
)
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
    evidence : dict of `Witness`, what moved the answer and how surely.
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
        self._given = look_at(calibrator, logits, features)
        self._use = check_use(use)
        self._logits, self._features = self._given.logits, self._given.features
        self._random_state = random_state
        self._seen = see(self._given.calibrator, self._logits, self._features)
        _, self._temperature, self._confidence, self._predicted, _ = self._seen
        self._known = evidence or getattr(calibrator, "evidence_", None)
        self._strata = find_strata(self._confidence)
        self._numbers = check_row_numbers(row_numbers, len(self._logits))
        self.drawn_from = drawn_from
        self._rows, self._labels = np.empty(0, np.intp), np.empty(0, np.intp)

    @property
    def n_rows(self) -> int:
        """Number of rows of the batch."""
        return len(self._logits)

    @property
    def n_labels(self) -> int:
        """Number of rows whose label is known."""
        return len(self._rows)

    @property
    def labelled_rows(self) -> np.ndarray:
        """Row numbers with known labels, ascending."""
        return self._numbers[self._rows]

    @cached_property
    def outside(self) -> Coverage | None:
        """Which rows lie where no calibration data was; None if nothing tells."""
        regions = getattr(self._known, "regions", None)
        if regions is None:
            regions = getattr(self._given.calibrator, "clusters_", None)
        if regions is None or self._features is None:
            return None
        return coverage(self._features, regions)

    @cached_property
    def evidence(self) -> dict[str, Witness]:
        """What is known before labels: where each puts the logit of the accuracy."""
        found = find_witnesses(self._seen, self._known, self._use)
        return {witness.name: witness for witness in found}

    @cached_property
    def accuracy(self) -> Interval:
        """Expected accuracy and its 90 % interval."""
        return accuracy_interval(self._belief, self._confidence)

    @cached_property
    def _belief(self) -> Belief:
        return self._believe(self._labelled())

    def _believe(self, labelled: Labelled | None) -> Belief:
        known = self._known if "left_out" in self._use else None
        witness = together(list(self.evidence.values()), known)
        return believe_accuracy(self._confidence, [witness], labelled)

    def _labelled(self, wanted: np.ndarray | None = None) -> Labelled | None:
        """The labelled rows, or those of them that a mask picks."""
        if "labels" not in self._use:
            return None
        rows = self._rows if wanted is None else self._rows[wanted[self._rows]]
        if not len(rows):
            return None
        weights = label_weights(self._strata, self._rows)
        right = self._predicted[self._rows] == self._labels
        if wanted is not None:
            weights, right = weights[wanted[self._rows]], right[wanted[self._rows]]
        return Labelled(self._confidence[rows], right, weights / weights.sum())

    @cached_property
    def calibrator(self) -> Any:
        """What was given, moved to this domain: it predicts, saves and exports."""
        return self._given.around(self._moved)

    @cached_property
    def _moved(self) -> OffsetTemperature:
        witnesses, labelled = list(self.evidence.values()), None
        line = np.log(self._temperature)
        if "labels" in self._use and self.n_labels:
            rows = self._rows
            labelled = LabelledLogits(self._logits[rows], self._labels, line[rows])
        middle, move = float(line.mean()), Move(0.0, 1.0)
        # Left-out domains tell how far off it may be, not in which direction.
        if labelled is not None or len(witnesses) > 1:
            move = best_move(self._curve, witnesses, labelled, middle)
        return OffsetTemperature(
            self._given.calibrator, move.offset, move.slope, middle
        )

    @cached_property
    def _curve(self) -> np.ndarray:
        lines = np.log(self._temperature)
        return confidence_curve(self._logits, lines, self._confidence)

    def by_class(self) -> dict[Any, GroupAccuracy]:
        """Expected accuracy of the rows predicted as each class (its precision)."""
        classes = self._given.classes
        names = self._predicted if classes is None else classes[self._predicted]
        return self._by(names)

    def by_group(self, groups: ArrayLike) -> dict[Any, GroupAccuracy]:
        """Expected accuracy of each group of rows; groups : (n,) names.

        How far groups stray is learned from predicted classes of left-out domains; of
        groups that differ more than these, the intervals promise too much.
        """
        return self._by(check_domains(groups, self.n_rows, "groups"))

    def _by(self, groups: np.ndarray) -> dict[Any, GroupAccuracy]:
        spread = GROUP_SPREAD if self._known is None else self._known.group_spread
        found = {}
        for name in np.unique(groups):
            mask = groups == name
            own, others = self._labelled(mask), self._labelled(~mask)
            whole = self._belief if own is None else self._believe(others)
            part = group_accuracy(self._confidence, mask, whole, spread, own)
            found[name.item()] = part
        return found

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
        labelled = np.zeros(self.n_rows, bool)
        labelled[self._rows] = True
        if width is not None:
            n = labels_for_width(width, self._belief, self.accuracy, self._confidence)
            check_reachable(width, n, labelled)
        n = check_free(n, labelled)
        place = asking_order(self._strata, self._random_state)
        moved = self._belief.mean - float(logit(self._confidence.mean()))
        sure = expit(logit(self._confidence) + moved)
        return self._numbers[choose_rows(sure, self._strata, place, labelled, n)]

    def with_labels(self, rows: Any, labels: ArrayLike) -> Self:
        """The same domain, knowing the labels of these rows, too.

        rows, labels : (m,) row numbers of the batch, best those of `rows_to_label`,
            and the true class of each. Labels of several calls add up.
        """
        rows = check_rows(rows, self._numbers)
        labels = self._given.number(labels)
        labels = check_new_labels(labels, self._logits.shape[1], rows)
        new, known = self._copy(), (self.labelled_rows, self._labels)
        numbers, new._labels = merge_labels(*known, rows, labels)
        new._rows = np.searchsorted(self._numbers, numbers)
        return new

    def without(self, *kinds: str) -> Self:
        """The same domain with some kinds of evidence switched off."""
        check_use(kinds)
        new = self._copy("evidence")
        new._use = tuple(kind for kind in self._use if kind not in kinds)
        return new

    def _copy(self, *more: str) -> Self:
        new = copy.copy(self)
        for name in ("accuracy", "calibrator", "_moved", "_belief", *more):
            new.__dict__.pop(name, None)
        return new

    def threshold(self, accuracy: float = 0.95, *, level: float = 0.9) -> Threshold:
        """The lowest confidence of `calibrator` to answer at.

        accuracy : wanted share of answered rows that are right, in this domain.
        level : how certain that shall be, given how far off domains usually are.
        """
        if not 0.5 <= level < 1:
            raise ValueError(f"level is {level}; wanted a share in [0.5, 1)")
        sure = see(self._moved, self._logits, self._features).confidence
        lowest = float(expit(self._belief.quantile(1 - level)))
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
        limit = find_limit(self._known, score, coverage, promise)
        found = members(self._logits, self._temperature, score, limit)
        return PredictionSets(found, coverage, promise, score, limit)

    @property
    def notes(self) -> list[str]:
        """What was missing, in sentences."""
        place = asking_order(self._strata, self._random_state)
        return find_notes(self._known, self._strata, place, self._rows)

    def __str__(self) -> str:
        return as_sentence(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Expected accuracy as each kind of evidence is added; returns the axes."""
        return draw(self, ax)
