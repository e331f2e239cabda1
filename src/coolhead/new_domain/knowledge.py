"""What is known of a new domain's rows, and what follows from it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

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
from coolhead.new_domain.batch import SeenRows
from coolhead.new_domain.evidence import GROUP_SPREAD, Evidence
from coolhead.new_domain.given import Given
from coolhead.new_domain.labelling import label_weights
from coolhead.new_domain.posterior import Belief, Witness
from coolhead.new_domain.temperature import (
    LabelledLogits,
    Move,
    best_move,
    confidence_curve,
)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The rows of a new domain, what is known of them, and what may be used of that.

    given, seen : the rows as they came, and what the calibrator says of them.
    evidence : of left-out domains, or None; use : kinds that may move the answer.
    strata : (n,) of each row. rows, labels : (m,) where the label is known, and it.
    """

    given: Given
    seen: SeenRows
    evidence: Evidence | None
    use: tuple[str, ...]
    strata: np.ndarray
    rows: np.ndarray
    labels: np.ndarray

    def but(self, **changes: Any) -> Self:
        """The same with other labels, or less to be used."""
        new = replace(self, **changes)
        # What unlabelled rows say takes a while to find, and labels do not change it.
        kept = ("curve",) if "use" in changes else ("curve", "witnesses")
        vars(new).update(
            {name: vars(self)[name] for name in kept if name in vars(self)}
        )
        return new

    @cached_property
    def witnesses(self) -> dict[str, Witness]:
        """What is known before labels: where each puts the logit of the accuracy."""
        found = find_witnesses(self.seen, self.evidence, self.use)
        return {witness.name: witness for witness in found}

    @cached_property
    def belief(self) -> Belief:
        """Where the logit of the accuracy lies."""
        return self._believe(self._labelled())

    @cached_property
    def accuracy(self) -> Interval:
        """Expected accuracy and its 90 % interval."""
        return accuracy_interval(self.belief, self.seen.confidence)

    @cached_property
    def moved(self) -> OffsetTemperature:
        """The calibrator, moved to this domain."""
        witnesses, labelled = list(self.witnesses.values()), None
        line = np.log(self.seen.temperature)
        if "labels" in self.use and len(self.rows):
            logits = self.seen.logits[self.rows]
            labelled = LabelledLogits(logits, self.labels, line[self.rows])
        middle, move = float(line.mean()), Move(0.0, 1.0)
        # Left-out domains tell how far off it may be, not in which direction.
        if labelled is not None or len(witnesses) > 1:
            move = best_move(self.curve, witnesses, labelled, middle)
        return OffsetTemperature(self.given.calibrator, move.offset, move.slope, middle)

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
        """Expected accuracy of each group of rows; groups : (n,) names."""
        spread = GROUP_SPREAD if self.evidence is None else self.evidence.group_spread
        found = {}
        for name in np.unique(groups):
            mask = groups == name
            own, others = self._labelled(mask), self._labelled(~mask)
            whole = self.belief if own is None else self._believe(others)
            part = group_accuracy(self.seen.confidence, mask, whole, spread, own)
            found[name.item()] = part
        return found

    def _believe(self, labelled: Labelled | None) -> Belief:
        known = self.evidence if "left_out" in self.use else None
        witness = together(list(self.witnesses.values()), known)
        return believe_accuracy(self.seen.confidence, [witness], labelled)

    def _labelled(self, wanted: np.ndarray | None = None) -> Labelled | None:
        """The labelled rows, or those of them that a mask picks."""
        if "labels" not in self.use:
            return None
        rows = self.rows if wanted is None else self.rows[wanted[self.rows]]
        if not len(rows):
            return None
        weights = label_weights(self.strata, self.rows)
        right = self.seen.predicted[self.rows] == self.labels
        if wanted is not None:
            weights, right = weights[wanted[self.rows]], right[wanted[self.rows]]
        return Labelled(self.seen.confidence[rows], right, weights / weights.sum())
